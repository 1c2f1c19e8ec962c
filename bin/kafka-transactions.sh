#!/bin/sh
# Kafka's name for `headrace kafka transactions`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka transactions "$@"
