#!/bin/sh
# Kafka's name for `headrace kafka console-share-consumer`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka console-share-consumer "$@"
