#!/bin/sh
# Kafka's name for `headrace kafka features`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka features "$@"
