#!/bin/sh
# Kafka's name for `headrace kafka dump-log`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka dump-log "$@"
