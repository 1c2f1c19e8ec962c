#!/bin/sh
# Kafka's name for `headrace kafka verifiable-producer`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka verifiable-producer "$@"
