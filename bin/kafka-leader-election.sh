#!/bin/sh
# Kafka's name for `headrace kafka leader-election`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka leader-election "$@"
