"""How a command fails: one sentence with cause and remedy, and an exit code for scripts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    FAILED = 1  # the cluster refused, or the work could not be done
    USAGE = 2  # the command line makes no sense
    UNREACHABLE = 3  # no broker answered
    INTERRUPTED = 130  # Ctrl-C
    OUTPUT_CLOSED = 141  # the reader of our output went away
    TERMINATED = 143  # SIGTERM


class Failure(Exception):
    """Ends the command; `sentence` is all the user sees."""

    def __init__(self, sentence: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


class Misuse(Failure):
    """A command line that parses but makes no sense."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, Exit.USAGE)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A phrase naming the nearest known name, ready to be put behind a sentence; empty when none is near."""
    from headrace.nearest import nearest

    near = nearest(name, known)
    return f" Did you mean '{near}'?" if near else ""
