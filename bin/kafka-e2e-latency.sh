#!/bin/sh
# Kafka's name for `headrace kafka e2e-latency`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka e2e-latency "$@"
