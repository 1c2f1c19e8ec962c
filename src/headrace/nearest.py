"""The known name most like one that is not known, for every "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """None when nothing is at least as similar as ``cutoff``, where 1 means equal."""
    from difflib import get_close_matches  # slow to import, and needed only after a mistake

    matches = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return matches[0] if matches else None
