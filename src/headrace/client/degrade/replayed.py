"""A dropped record on its second way: in `<group>.replay`, with headers that say where it came from and for which handler it is.

Only the group that dropped it reads that topic, so no other group sees the record twice.
"""

from __future__ import annotations

from typing import Any

from headrace.client.once.ids import ID_HEADER
from headrace.client.record import Headers, Record

SUFFIX = ".replay"
PREFIX = "headrace.degraded."
TOPIC, PARTITION, OFFSET, TIMESTAMP, HANDLER, RULE = (
    PREFIX + name for name in ("topic", "partition", "offset", "timestamp", "handler", "rule")
)


def topic_of(group: str) -> str:
    return group + SUFFIX


def headers_for(record: Record[Any, Any], handler: str | None, rule: str) -> list[tuple[str, bytes | None]]:
    """For a record about to be replayed, perhaps not for the first time: it keeps where it first came from."""
    origin = origin_of(record)
    own = own_headers(record.headers)
    if not any(name == ID_HEADER for name, _ in own):
        own.append((ID_HEADER, f"{origin.topic}-{origin.partition}-{origin.offset}".encode()))
    places = (
        (TOPIC, origin.topic),
        (PARTITION, origin.partition),
        (OFFSET, origin.offset),
        (TIMESTAMP, origin.timestamp),
        (RULE, rule),
    )
    only = handler if handler is not None else handler_of(record)
    return [
        *own,
        *((name, str(value).encode()) for name, value in places),
        *([] if only is None else [(HANDLER, only.encode())]),
    ]


def own_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    return [(name, value) for name, value in headers if not name.startswith(PREFIX)]


def handler_of(record: Record[Any, Any]) -> str | None:
    """The one of several handlers that it is for; None: for all."""
    name = record.header(HANDLER)
    return None if name is None else name.decode("utf-8", "replace")


def origin_of(record: Record[Any, Any]) -> Record[Any, Any]:
    """The record as it was where it was dropped first; itself when it was never replayed."""
    topic, partition, offset, timestamp = (
        record.header(name) for name in (TOPIC, PARTITION, OFFSET, TIMESTAMP)
    )
    if topic is None or partition is None or offset is None or timestamp is None:
        return record
    try:
        place = topic.decode(), int(partition), int(offset), int(timestamp)
    except ValueError:
        return record  # not written by a replay
    return record.moved(*place, tuple(own_headers(record.headers)))
