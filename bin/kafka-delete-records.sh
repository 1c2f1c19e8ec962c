#!/bin/sh
# Kafka's name for `headrace kafka delete-records`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka delete-records "$@"
