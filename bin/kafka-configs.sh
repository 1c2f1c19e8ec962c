#!/bin/sh
# Kafka's name for `headrace kafka configs`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka configs "$@"
