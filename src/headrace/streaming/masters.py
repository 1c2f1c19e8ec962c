"""Looks at a Spark master before Spark is started for it, and says why Spark did not start: it would try a master that
is not there for a minute, and say so only in its log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from headrace.streaming.errors import SparkDidNotStart

LOCAL = "local[*]"
"""The master when none is named."""
_ADDRESS = r"(?:\[[\da-fA-F:]+\]|[^:,/\s]+):\d{1,5}"
_KNOWN = re.compile(
    r"local(?:\[(?:\*|[1-9]\d*)(?:\s*,\s*[1-9]\d*)?\])?|local-cluster\[[\d\s,]+\]|yarn|k8s://.+"
    rf"|spark://(?P<addresses>{_ADDRESS}(?:,{_ADDRESS})*)"
)
_PATIENCE = 5.0  # seconds for a connection

# In Spark's log, when its process has ended; in the error itself, when it has not.
_CAUSE = re.compile(r'^(?:Exception in thread "main"|:) [\w.$]+: (?P<cause>.+)$', re.MULTILINE)
_NO_JAVA = re.compile(
    r"(?P<cause>\S*java: (?:No such file or directory|command not found|not found)|JAVA_HOME is not set)"
)


def check_master(master: str) -> None:
    """Raises SparkDidNotStart for a master that Spark would refuse or that does not answer."""
    match = _KNOWN.fullmatch(master)
    if match is None:
        raise SparkDidNotStart(
            f"'{master}' is no Spark master; --master takes local[N], spark://HOST:PORT, yarn or k8s://https://HOST:PORT."
        )
    if match["addresses"]:
        _find_one(match["addresses"].split(","))


def why(error: Exception, log: Path) -> SparkDidNotStart:
    """What Spark met when it started: its own words, in the error or in the file that it wrote to."""
    output = f"{error}\n{log.read_text(errors='replace')}"
    if match := _NO_JAVA.search(output):
        return SparkDidNotStart(
            f"Spark did not start ({match['cause']}): it needs Java 17 or newer, in the PATH or at JAVA_HOME."
        )
    match = _CAUSE.search(output)
    cause = "" if match is None else f" ({match['cause'].strip().rstrip('.')})"
    return SparkDidNotStart(f"Spark did not start{cause}; all that it said is in {log}.")


def _find_one(addresses: Sequence[str]) -> None:
    import socket

    reasons = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {_reason(error)}")
        else:
            return
    raise SparkDidNotStart(
        f"No Spark master answers ({'; '.join(reasons)}); start one, or name another with --master."
    )


def _reason(error: Exception) -> str:
    text = "it does not answer" if isinstance(error, TimeoutError) else getattr(error, "strerror", None)
    return (text or str(error)).lower()
