#!/bin/sh
# Kafka's name for `headrace kafka share-groups`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka share-groups "$@"
