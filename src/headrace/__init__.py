"""Headrace: a Kafka-compatible message platform in Python."""

import os

__version__ = "0.1.0"

if "HEADRACE_PURE" in os.environ:
    from headrace import compiled

    if compiled.pure_is_asked_for():
        compiled.choose_sources()
