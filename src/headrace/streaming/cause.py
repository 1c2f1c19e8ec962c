"""The cause inside what Spark says of a failure: the innermost Python exception among the layers of Java and Python.

Spark hands a worker's traceback on as text, inside a sentence of its own, inside a Java stack, and, when a batch is
written by a function of the driver, inside another Python traceback. Only the innermost says what went wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"(?P<module>(?:[A-Za-z_]\w*\.)*)(?P<kind>[A-Za-z_]\w*)(?:: (?P<message>.*))?")
_MESSAGE_ENDS = re.compile(
    r"\s*$|\s+at [\w.$]+|\s*Caused by: |During handling of the above|The above exception was|Driver stacktrace:"
    r"|JVM stacktrace:|\s*SQLSTATE: |=== |.*" + re.escape(_TRACEBACK)
)
_WRAPPERS = ("py4j.", "pyspark.errors.exceptions.captured.")
QUERY = "=== Streaming Query ==="


@dataclass(frozen=True, slots=True)
class Cause:
    """An exception as its traceback names it."""

    module: str
    kind: str
    message: str

    @property
    def is_ours(self) -> bool:
        """Its message is a sentence of Headrace's, which needs no name of a class before it."""
        return self.module.startswith("headrace.")

    def __str__(self) -> str:
        if not self.message:
            return self.kind
        return self.message if self.is_ours else f"{self.kind}: {self.message}"


def cause_in(text: str) -> Cause | None:
    """The innermost exception of the Python tracebacks in the text, one of Headrace's own if there is any; None without
    a traceback."""
    found = [cause for cause in _causes(text.partition(QUERY)[0]) if not cause.module.startswith(_WRAPPERS)]
    ours = [cause for cause in found if cause.is_ours]
    return next(reversed(ours or found), None)


def _causes(text: str) -> list[Cause]:
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        if line.rstrip().endswith(_TRACEBACK) and (cause := _raised(lines[number + 1 :])) is not None:
            found.append(cause)
    return found


def _raised(lines: list[str]) -> Cause | None:
    """What follows a traceback's frames, which are indented; the message may have several lines."""
    for number, line in enumerate(lines):
        if line.startswith((" ", "\t")) or not line:
            continue
        match = _RAISED.fullmatch(line.rstrip())
        if match is None:
            return None
        more = []
        for following in lines[number + 1 :]:
            if _MESSAGE_ENDS.match(following):
                break
            more.append(following.strip())
        return Cause(match["module"], match["kind"], " ".join([match["message"] or "", *more]).strip())
    return None
