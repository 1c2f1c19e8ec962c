"""One record waiting in an outbox, and its bytes on disk. No I/O.

The id is fixed when the record enters the outbox, so however often it is sent, its receivers can recognize it.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from typing import Protocol, TypeVar

from headrace.client.errors import ClientError
from headrace.client.once.ids import ID_HEADER
from headrace.client.record import HeadersLike, header_list

_VERSION = 1
_NONE = 0xFFFFFFFF
H = TypeVar("H")


class OutboxError(ClientError):
    """The journal cannot be used: it is in use elsewhere, damaged, or the disk failed."""


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    timestamp: int | None


class Outbox(Protocol[H]):
    """What a relay needs: the next entries, each with a handle, and a way to tick off a sent one."""

    def pending(self, limit: int) -> list[tuple[H, Entry]]: ...

    def sent(self, handles: list[H]) -> None:
        """Of the entries that ``pending`` gave last, the first ones, in that order, have been acknowledged."""
        ...

    def wait(self, timeout: float) -> None:
        """Return when there may be something new, or after ``timeout`` seconds."""
        ...

    def hold(self) -> bool:
        """Become, or stay, the only relay of this outbox; False when another one is."""
        ...


def make_entry(
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: HeadersLike | None,
    partition: int | None,
    timestamp: int | None,
) -> Entry:
    """An id given as header ``headrace.id`` is kept; otherwise one is made."""
    pairs = header_list(headers)
    given = next((value for name, value in pairs if name == ID_HEADER and value), None)
    if given is None:
        given = uuid.uuid4().hex.encode()
        pairs.append((ID_HEADER, given))
    return Entry(given.decode("utf-8", "replace"), topic, key, value, tuple(pairs), partition, timestamp)


def encode(entry: Entry) -> bytes:
    parts = [
        struct.pack(
            ">Biq",
            _VERSION,
            -1 if entry.partition is None else entry.partition,
            -1 if entry.timestamp is None else entry.timestamp,
        ),
        _sized(entry.id.encode()),
        _sized(entry.topic.encode()),
        _sized(entry.key),
        _sized(entry.value),
        encode_headers(entry.headers),
    ]
    return b"".join(parts)


def decode(data: bytes) -> Entry:
    version, partition, timestamp = struct.unpack_from(">Biq", data)
    if version != _VERSION:
        raise ValueError(f"entries of version {version} are not known here; use a newer Headrace")
    at = struct.calcsize(">Biq")
    identity, at = _take(data, at)
    topic, at = _take(data, at)
    key, at = _take(data, at)
    value, at = _take(data, at)
    headers = decode_headers(data[at:])
    return Entry(
        (identity or b"").decode(),
        (topic or b"").decode(),
        key,
        value,
        headers,
        None if partition < 0 else partition,
        None if timestamp < 0 else timestamp,
    )


def encode_headers(headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
    return b"".join(_sized(name.encode()) + _sized(value) for name, value in headers)


def decode_headers(data: bytes) -> tuple[tuple[str, bytes | None], ...]:
    headers: list[tuple[str, bytes | None]] = []
    at = 0
    while at < len(data):
        name, at = _take(data, at)
        value, at = _take(data, at)
        headers.append(((name or b"").decode(), value))
    return tuple(headers)


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">I", _NONE) if data is None else struct.pack(">I", len(data)) + data


def _take(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">I", data, at)
    at += 4
    if size == _NONE:
        return None, at
    if at + size > len(data):
        raise ValueError("an entry ends too early")
    return data[at : at + size], at + size
