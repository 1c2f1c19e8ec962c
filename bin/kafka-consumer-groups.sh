#!/bin/sh
# Kafka's name for `headrace kafka consumer-groups`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka consumer-groups "$@"
