"""Durations as people write and read them: on command lines, in tables and messages."""

from __future__ import annotations

import re

_ISO = re.compile(
    r"^(?P<sign>[-+]?)P(?:(?P<d>[\d.]+)D)?(?:T(?:(?P<h>[\d.]+)H)?(?:(?P<m>[\d.]+)M)?(?:(?P<s>[\d.]+)S)?)?$",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"^(?:(?P<d>[\d.]+)d)?(?:(?P<h>[\d.]+)h)?(?:(?P<m>[\d.]+)m)?(?:(?P<s>[\d.]+)s)?(?:(?P<ms>[\d.]+)ms)?$",
    re.IGNORECASE,
)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}


def seconds_of(text: str) -> float:
    """Seconds of a duration: 50ms, 90s, 1h30m, 7d, or ISO 8601's P1DT2H. Raises ValueError with a sentence."""
    match = _ISO.match(text.strip()) or _SHORT.match(text.strip())
    found = match.groupdict() if match else {}
    parts = {unit: value for unit, value in found.items() if value and unit in _SECONDS}
    try:
        if not parts:
            raise ValueError
        seconds = sum(float(value) * _SECONDS[unit] for unit, value in parts.items())
    except ValueError:
        raise ValueError(
            f"'{text}' is no duration; write it as 90s, 1h30m or 7d, or as ISO 8601's P1DT2H."
        ) from None
    return -seconds if found.get("sign") == "-" else seconds


def show_seconds(seconds: float | None) -> str | None:
    """A duration to read at a glance: 0.4 s, 12 s, 3 min 20 s, 5 h 12 min, 4 d 3 h."""
    if seconds is None:
        return None
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    for position, (name, size) in enumerate(units):
        if whole >= size:
            text = f"{whole // size} {name}"
            rest = whole % size
            if rest and position + 1 < len(units):
                smaller, smaller_size = units[position + 1]
                text += f" {rest // smaller_size} {smaller}" if rest >= smaller_size else ""
            return text
    return "0 s"
