#!/bin/sh
# Kafka's name for `headrace kafka consumer-perf-test`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka consumer-perf-test "$@"
