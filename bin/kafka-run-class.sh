#!/bin/sh
# Kafka's name for `headrace kafka run-class`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka run-class "$@"
