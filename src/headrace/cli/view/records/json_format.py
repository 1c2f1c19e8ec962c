"""Records as JSON lines: what `headrace consume --json` prints, `headrace produce --from-json` reads back.

Text is a string; bytes that are no UTF-8 are {"base64": "…"}. Any other JSON value is taken as its own text.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from confluent_kafka import Message

from headrace.cli.failure import Failure
from headrace.cli.view.records.record import Headers, Record, headers_of

_FIELDS = {
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "leader_epoch",
    "key",
    "value",
    "headers",
}
_TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


def to_json(message: Message) -> str:
    kind, timestamp = message.timestamp()
    return json.dumps(
        {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": timestamp if kind else None,
            "timestamp_type": _TIMESTAMP_TYPES.get(kind),
            "key": _show(message.key()),
            "value": _show(message.value()),
            "headers": [[name, _show(value)] for name, value in headers_of(message)],
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def from_json(line: bytes, number: int) -> Record:
    """Raises Failure with the line's number when it is not a record."""
    try:
        given = json.loads(line)
    except ValueError as error:
        raise Failure(f"Line {number} is not JSON: {error}.") from None
    if not isinstance(given, dict) or not given.keys() <= _FIELDS or "value" not in given:
        raise Failure(
            f'Line {number} is not a record; it takes {{"value": …}} and, if wanted, key, headers, partition, timestamp.'
        )
    return Record(
        value=_read(given["value"], number),
        key=_read(given.get("key"), number),
        headers=_read_headers(given.get("headers") or [], number),
        partition=_integer(given.get("partition"), "partition", number),
        timestamp=_integer(given.get("timestamp"), "timestamp", number),
    )


def _show(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _read(value: Any, number: int) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise Failure(f"Line {number} holds base64 that cannot be read.") from None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _read_headers(headers: Any, number: int) -> Headers:
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not isinstance(pairs, list) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
        raise Failure(f"Line {number}: headers are [[name, value], …] or {{name: value, …}}.")
    return [(str(name), _read(value, number)) for name, value in pairs]


def _integer(value: Any, name: str, number: int) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise Failure(f"Line {number}: {name} is a number, not {json.dumps(value)}.")
    return value
