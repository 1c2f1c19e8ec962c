#!/bin/sh
# Kafka's name for `headrace kafka verifiable-consumer`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka verifiable-consumer "$@"
