#!/bin/sh
# MirrorMaker 2's name: says which mirror links do what its properties file asks for.
exec "$(dirname "$(readlink -f "$0")")/headrace" mirror from-mirror-maker "$@"
