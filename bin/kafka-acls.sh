#!/bin/sh
# Kafka's name for `headrace kafka acls`.
exec "$(dirname "$(readlink -f "$0")")/headrace" kafka acls "$@"
