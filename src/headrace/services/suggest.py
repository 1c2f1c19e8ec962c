"""What to say behind "there is no such name": the nearest known one, else all of them."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.nearest import nearest

MAX_LISTED = 12


def suggestion(name: str, known: Iterable[str]) -> str:
    """A sentence that begins with a space: ` Did you mean 'place'?` or ` It has cancel, place.`"""
    names = list(known)
    near = nearest(name, names)
    if near:
        return f" Did you mean '{near}'?"
    if not names:
        return " It has none."
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f" It has {', '.join(names[:MAX_LISTED])}{more}."
