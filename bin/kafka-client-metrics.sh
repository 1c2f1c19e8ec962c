#!/bin/sh
# Kafka's name for `headrace kafka client-metrics`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka client-metrics "$@"
