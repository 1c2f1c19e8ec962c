#!/bin/sh
# Kafka's name for `headrace kafka reassign-partitions`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka reassign-partitions "$@"
