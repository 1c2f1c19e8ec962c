"""What a request body holds: one JSON value, a JSON array of them, or one a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.connectors.topic import key_of, read_json, to_json


class BadRequest(ValueError):
    """The sender's mistake, in a sentence; ``status`` is HTTP's number for it."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Incoming:
    value: bytes
    key: bytes | None


def read(body: bytes, content_type: str, key_fields: tuple[str, ...], key: bytes | None) -> list[Incoming]:
    """Records in the order they were sent. A key from the request's header counts for each of them."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"):
        return [
            _incoming(_parse(line, f"line {number} is"), line, key_fields, key)
            for number, line in enumerate(body.splitlines(), 1)
            if line.strip()
        ]
    if kind not in ("application/json", ""):
        raise BadRequest(f"{kind} is not taken here: send application/json or application/x-ndjson", 415)
    value = _parse(body, "the body is")
    if not isinstance(value, list):
        return [_incoming(value, body.strip(), key_fields, key)]
    return [_incoming(each, to_json(each), key_fields, key) for each in value]


def _parse(data: bytes, what: str) -> object:
    try:
        return read_json(data)
    except ValueError as error:
        raise BadRequest(f"{what} not JSON: {error}") from None


def _incoming(value: object, data: bytes, key_fields: Iterable[str], key: bytes | None) -> Incoming:
    fields = tuple(key_fields)
    if key is None and fields:
        key = key_of(value, fields) if isinstance(value, dict) else None
        if key is None:
            raise BadRequest(f"a record has no {' and '.join(fields)}, which its key is made of", 422)
    return Incoming(data, key)
