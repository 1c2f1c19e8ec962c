#!/bin/sh
# Kafka's name for `headrace kafka server-start`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka server-start "$@"
