#!/bin/sh
# Kafka's name for `headrace kafka broker-api-versions`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka broker-api-versions "$@"
