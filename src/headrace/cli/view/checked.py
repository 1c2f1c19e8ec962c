"""How `connect check` and `pipeline check` end: with the number of problems to fix, or with what can run."""

from __future__ import annotations

from headrace.cli.failure import Failure
from headrace.cli.view import output


def to_fix(problems: int, what: str) -> Failure:
    return Failure(f"{output.count(problems, 'problem')} to fix before {what} can run.")


def conclude(problems: int, what: str, checked: int, kind: str, *, quiet: bool) -> None:
    """`what` cannot run while it has problems; without any, so many of a `kind` can."""
    if problems:
        raise to_fix(problems, what)
    if not quiet:
        print(f"No problems: {output.count(checked, kind)} can run.")
