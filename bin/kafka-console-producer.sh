#!/bin/sh
# Kafka's name for `headrace kafka console-producer`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka console-producer "$@"
