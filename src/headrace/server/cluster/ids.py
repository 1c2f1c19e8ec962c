"""Topic and cluster ids: random 128-bit numbers, written as Kafka writes them (22 characters of base64)."""

from __future__ import annotations

import base64
import binascii
import uuid


def random_id() -> uuid.UUID:
    """A new id, never with a leading dash, which command lines would take for a flag."""
    while True:
        candidate = uuid.uuid4()
        if not format_id(candidate).startswith("-"):
            return candidate


def format_id(identifier: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def parse_id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise ValueError(f"{text!r} is not an id of 22 base64 characters") from None
