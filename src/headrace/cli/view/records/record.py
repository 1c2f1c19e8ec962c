"""A record as the console commands handle it: bytes, untouched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from confluent_kafka import Message

Headers = list[tuple[str, bytes | None]]


@dataclass(slots=True)
class Record:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    partition: int | None = None
    timestamp: int | None = None  # milliseconds


def headers_of(message: Message) -> Headers:
    # On a record that was read they are always a list of pairs; the declared type covers what producers accept too.
    return cast(Headers, message.headers() or [])
