#!/bin/sh
# Kafka's name for `headrace kafka topics`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka topics "$@"
