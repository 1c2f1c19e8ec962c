#!/bin/sh
# Kafka's name for `headrace kafka groups`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka groups "$@"
