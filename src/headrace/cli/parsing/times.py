"""Times and durations as people write them. A time without a zone is UTC, as in Kafka's tools."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.cli.failure import Misuse
from headrace.client import durations
from headrace.client.durations import show_seconds as show_seconds


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
    try:
        return durations.seconds_of(text)
    except ValueError as error:
        raise Misuse(str(error)) from None
