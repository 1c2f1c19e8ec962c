#!/bin/sh
# Kafka's name for `headrace kafka cluster`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka cluster "$@"
