#!/bin/sh
# Kafka's name for `headrace kafka storage`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka storage "$@"
