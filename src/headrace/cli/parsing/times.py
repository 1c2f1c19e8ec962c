"""Times and durations as people write them. A time without a zone is UTC, as in Kafka's tools."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from headrace.cli.failure import Misuse

_ISO = re.compile(
    r"^(?P<sign>[-+]?)P(?:(?P<d>[\d.]+)D)?(?:T(?:(?P<h>[\d.]+)H)?(?:(?P<m>[\d.]+)M)?(?:(?P<s>[\d.]+)S)?)?$",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"^(?:(?P<d>[\d.]+)d)?(?:(?P<h>[\d.]+)h)?(?:(?P<m>[\d.]+)m)?(?:(?P<s>[\d.]+)s)?$", re.IGNORECASE
)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def milliseconds_of(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time (2024-05-31T12:00:00) or date."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Misuse(
            f"'{text}' is no time; write it as 2024-05-31T12:00:00 (UTC), or with a zone such as +02:00."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def seconds_of(text: str) -> float:
    """Seconds of a duration: 90s, 1h30m, 7d, or ISO 8601's P1DT2H."""
    match = _ISO.match(text.strip()) or _SHORT.match(text.strip())
    parts = (
        {unit: value for unit, value in match.groupdict().items() if value and unit in _SECONDS}
        if match
        else {}
    )
    if match is None or not parts:
        raise Misuse(f"'{text}' is no duration; write it as 90s, 1h30m or 7d, or as ISO 8601's P1DT2H.")
    try:
        seconds = sum(float(value) * _SECONDS[unit] for unit, value in parts.items())
    except ValueError:
        raise Misuse(
            f"'{text}' is no duration; write it as 90s, 1h30m or 7d, or as ISO 8601's P1DT2H."
        ) from None
    return -seconds if match.groupdict().get("sign") == "-" else seconds


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
