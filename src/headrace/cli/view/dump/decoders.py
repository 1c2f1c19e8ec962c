"""What a record's key and value say: text, numbers, or the records of `__consumer_offsets`."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from collections.abc import Callable
from typing import Any

from headrace.cli.failure import Failure
from headrace.wire.codec import WireError, decode
from headrace.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.wire.records import Record
from headrace.wire.schema import Message

Decoder = Callable[[Record], tuple[str | None, str | None]]
"""Key and payload to show; None shows nothing."""

_INT16 = struct.Struct(">h")


def text(record: Record) -> tuple[str | None, str | None]:
    return _text(record.key), _text(record.value)


def by_classes(key_class: str | None, value_class: str | None) -> Decoder:
    """Kafka's own decoder classes: String, Integer, Long and Default (bytes)."""
    key, value = _decoder(key_class), _decoder(value_class)
    return lambda record: (
        None if record.key is None else key(record.key),
        None if record.value is None else value(record.value),
    )


def offsets(record: Record) -> tuple[str | None, str | None]:
    """The records of __consumer_offsets, as JSON."""
    from headrace.server.groups.records import decode_record

    if record.key is None:
        return f"Error at offset {record.offset}, skipping. The record has no key.", None
    try:
        decoded = decode_record(record.key, record.value)
    except WireError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    (kind,) = _INT16.unpack_from(record.key)
    if decoded is None:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    key = _compact({"type": str(kind), "data": _as_json(decoded.key, 0)})
    if decoded.value is None or record.value is None:
        return key, "<DELETE>"
    (version,) = _INT16.unpack_from(record.value)
    data = _as_json(decoded.value, version)
    if data.get("protocolType") == "consumer":
        for member, shown in zip(getattr(decoded.value, "members", []), data["members"], strict=True):
            shown["subscription"] = _embedded(ConsumerProtocolSubscription, member.subscription)
            shown["assignment"] = _embedded(ConsumerProtocolAssignment, member.assignment)
    return key, _compact({"version": str(version), "data": data})


def _as_json(message: Message, version: int) -> dict[str, Any]:
    shown = {}
    for field in message.FIELDS:
        value = getattr(message, field.name)
        present = field.versions[0] <= version <= field.versions[1]
        # Kafka shows a tagged field unless it has its default, and takes null for no default.
        if present and not (field.tag is not None and value is not None and value == field.default):
            shown[_camel(field.name)] = _value(value, version)
    return shown


def _value(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return _as_json(value, version)
    if isinstance(value, list):
        return [_value(item, version) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value


def _embedded(kind: type[Message], data: bytes) -> Any:
    """A member's own bytes, by convention in the consumer protocol; as they are where they keep to none."""
    try:
        (version,) = _INT16.unpack_from(data)
        return _as_json(decode(kind, version, data, 2)[0], version)
    except (struct.error, WireError):
        return _value(data, 0)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _number(layout: str) -> Callable[[bytes], str]:
    packed = struct.Struct(layout)

    def show(data: bytes) -> str:
        if len(data) != packed.size:
            raise Failure(f"The decoder expects {packed.size} bytes, but a record has {len(data)} there.")
        return str(packed.unpack(data)[0])

    return show


_CLASSES: dict[str, Callable[[bytes], str]] = {
    "StringDecoder": lambda data: data.decode(errors="replace"),
    "DefaultDecoder": lambda data: data.decode(errors="replace"),
    "IntegerDecoder": _number(">i"),
    "LongDecoder": _number(">q"),
}


def _decoder(name: str | None) -> Callable[[bytes], str]:
    found = _CLASSES.get((name or "StringDecoder").rpartition(".")[2])
    if found is None:
        raise Failure(
            f"The decoder {name} is Java code that cannot run here; known ones are {', '.join(_CLASSES)}."
        )
    return found
