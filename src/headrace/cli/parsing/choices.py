"""Names out of a known set, as an option takes them."""

from __future__ import annotations

from headrace.cli.failure import Misuse


def several(text: str | None, known: tuple[str, ...], what: str) -> list[str]:
    """Names from a list by commas, in any case."""
    by_lower = {name.lower(): name for name in known}
    chosen = [part.strip() for part in (text or "").split(",") if part.strip()]
    for part in chosen:
        if part.lower() not in by_lower:
            raise Misuse(f"Invalid {what} list '{text}'. Valid {what} are: {', '.join(known)}.")
    return [by_lower[part.lower()] for part in chosen]
