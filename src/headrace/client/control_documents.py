"""The records of a control topic: a key, and a JSON object or, where the key was removed, nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from headrace.client.record import Record

Document = dict[str, Any]


def read(records: Iterable[Record[bytes, bytes]]) -> Iterator[tuple[str, Document | None]]:
    """Records of somebody else are passed over."""
    for record in records:
        if record.key is None:
            continue
        try:
            document = None if record.value is None else json.loads(record.value)
        except ValueError:
            continue
        if document is None or isinstance(document, dict):
            yield record.key.decode("utf-8", "replace"), document


def encode(document: Document | None) -> bytes | None:
    return None if document is None else json.dumps(document, separators=(",", ":")).encode()
