"""What makes two deliveries the same: where the id of a record comes from.

An id from a header, the key or fields also recognises a record that its producer sent twice; an id from the
position only recognises one that was delivered twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from headrace.client.errors import Reject
from headrace.client.record import Record

ID_HEADER = "headrace.id"
MAX_BYTES = 200

IdOf = Callable[[Record[Any, Any]], bytes]


def from_header(name: str = ID_HEADER) -> IdOf:
    """The value of a header; an outbox sets ``headrace.id``."""

    def identify(record: Record[Any, Any]) -> bytes:
        value = record.header(name)
        if not value:
            raise Reject(f"{record} has no header {name}, which is to be its id")
        return value

    return identify


def from_key() -> IdOf:
    """The record's key, where each key comes once."""

    def identify(record: Record[Any, Any]) -> bytes:
        if record.raw_key is None:
            raise Reject(f"{record} has no key, which is to be its id")
        return record.raw_key

    return identify


def from_fields(*names: str) -> IdOf:
    """One or several fields of the decoded value, such as "transfer_id", "account_id"."""

    def identify(record: Record[Any, Any]) -> bytes:
        parts = [_field(record, name) for name in names]
        # JSON keeps ("a", "bc") and ("ab", "c") apart, and 1 and "1" too.
        return json.dumps(parts, default=str, ensure_ascii=False, separators=(",", ":")).encode()

    return identify


def from_position() -> IdOf:
    """Topic, partition and offset: recognises a redelivery, not a record that was sent twice."""
    return lambda record: f"{record.topic}-{record.partition}-{record.offset}".encode()


def fitted(identity: bytes) -> bytes:
    """The id itself, or its SHA-256 when it is longer than a store's key should be."""
    return (
        identity if len(identity) <= MAX_BYTES else b"sha256:" + hashlib.sha256(identity).hexdigest().encode()
    )


def _field(record: Record[Any, Any], name: str) -> object:
    value = record.value
    if isinstance(value, bytes):
        raise Reject(
            f"the value of {record} is bytes, in which no field {name} can be found: give a value_deserializer"
        )
    found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    if found is None:
        raise Reject(f"the value of {record} has no field {name}, which is to be part of its id")
    return found
