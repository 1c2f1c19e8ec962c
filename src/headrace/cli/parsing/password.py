"""A password from the user, without its ever standing on a command line, where other users of the machine could read it."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

from headrace.cli.failure import Failure, Misuse

STANDARD_INPUT = Path("-")


def read_password(file: Path | None, whose: str) -> str:
    """From the first line of a file (`-` for standard input), else asked twice on a terminal, else from standard input."""
    if file is not None and file != STANDARD_INPUT:
        try:
            with open(file) as opened:
                return _checked(opened.readline(), str(file))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise Failure(f"The password file {file} cannot be read: {reason}.") from None
    if file is None and sys.stdin.isatty():
        password = getpass.getpass(f"Password of {whose}: ")
        if password != getpass.getpass("Once more: "):
            raise Failure("The two passwords differ; nothing was changed.")
        return _checked(password, "the terminal")
    return _checked(sys.stdin.readline(), "standard input")


def _checked(line: str, place: str) -> str:
    password = line.rstrip("\r\n")
    if not password:
        raise Misuse(
            f"There is no password on {place}: write it there on one line, or name a file with --password-file."
        )
    return password
