#!/bin/sh
# Kafka's name for `headrace kafka delegation-tokens`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka delegation-tokens "$@"
