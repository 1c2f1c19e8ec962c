"""Topics' ids, which tell a topic from another of the same name that was made later. Kafka has them since 2.8."""

from __future__ import annotations

import base64
import uuid

from headrace.wire.schema import ZERO_UUID

Ids = dict[str, str]
"""Ids by topic in Kafka's notation; a topic whose brokers give no ids is missing."""


def shown(identifier: uuid.UUID) -> str | None:
    """As Kafka's tools write it; None when there is no id."""
    if identifier == ZERO_UUID:
        return None
    return base64.urlsafe_b64encode(identifier.bytes).rstrip(b"=").decode()


def differ(before: Ids, after: Ids, topic: str) -> bool:
    """Whether the name belongs to another topic now; what is not known never differs."""
    old, new = before.get(topic), after.get(topic)
    return old is not None and new is not None and old != new
