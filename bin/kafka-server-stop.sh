#!/bin/sh
# Kafka's name for `headrace kafka server-stop`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka server-stop "$@"
