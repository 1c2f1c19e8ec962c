"""Which Dubbo this is: the versions in URLs, on the wire and in messages, and the facts about this process."""

from __future__ import annotations

import os
import time
from importlib.metadata import version

PROTOCOL_VERSION = "2.0.2"
RELEASE = "2.7.3"


def runtime_parameters() -> dict[str, str]:
    """Facts about this process: protocol and release, when it started and which it is."""
    return {
        "dubbo": PROTOCOL_VERSION,
        "release": RELEASE,
        "headrace": version("headrace"),
        "timestamp": str(int(time.time() * 1000)),
        "pid": str(os.getpid()),
    }
