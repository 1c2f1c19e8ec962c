#!/bin/sh
# Kafka's name for `headrace kafka log-dirs`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka log-dirs "$@"
