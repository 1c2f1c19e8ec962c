"""The text of `max.connections.per.ip.overrides`: `host:count,…`."""

from __future__ import annotations

from headrace.server.config.definition import Value


def parse_overrides(text: str) -> dict[str, int]:
    """Counts by host, as written; ValueError for an entry that is not `host:count`."""
    found: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        host, separator, count = part.rpartition(":")
        if not separator or not host or not count.strip().isdecimal():
            raise ValueError(part)
        found[host.strip().strip("[]")] = int(count)
    return found


def check_overrides(value: Value) -> str | None:
    try:
        parse_overrides(str(value))
    except ValueError as error:
        return f"'{error}' is not host:count"
    return None
