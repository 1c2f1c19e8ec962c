#!/bin/sh
# Kafka's name for `headrace kafka get-offsets`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka get-offsets "$@"
