#!/bin/sh
# Kafka's name for `headrace kafka producer-perf-test`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka producer-perf-test "$@"
