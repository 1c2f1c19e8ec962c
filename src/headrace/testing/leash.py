"""Processes that end with the program that started them, however that one ends: even kill -9 leaves nothing behind.

A shell beside the process reads from a pipe that only the program holds. `let_go` writes to it; the end of the
program closes it, and then the shell kills the process. Unlike a parent death signal, which comes when the thread
that started the process ends, this does not care about threads.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# In the background a shell reads from /dev/null, hence the third descriptor; $$ is the process that `exec` becomes.
_SCRIPT = """exec 3<&0
{ read -r _ <&3 || kill -9 $$; } >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null"""


def start_on_leash(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """As `subprocess.Popen`, without a standard input; its `pid` is that of the command itself."""
    return subprocess.Popen(["/bin/sh", "-c", _SCRIPT, "sh", *command], stdin=subprocess.PIPE, **options)


def let_go(process: subprocess.Popen[Any]) -> None:
    """To be called when the process has ended: its number may soon be another's."""
    if process.stdin is not None and not process.stdin.closed:
        with suppress(BrokenPipeError):
            os.write(process.stdin.fileno(), b"\n")
        process.stdin.close()
