"""What groups need to know about the cluster: its topics, and the settings of the groups."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol


class Topics(Protocol):
    @property
    def version(self) -> int:
        """Grows when topics come, go or grow."""
        ...

    def names(self) -> Collection[str]: ...

    def topic_id(self, name: str) -> uuid.UUID | None: ...

    def topic_name(self, topic_id: uuid.UUID) -> str | None: ...

    def partition_count(self, name: str) -> int:
        """0 for a topic that does not exist."""
        ...

    def group_settings(self, group_id: str) -> Mapping[str, str]: ...


def metadata_hash(topics: Topics, names: Iterable[str]) -> int:
    """One number for all of the topics that an assignment depends on; 0 when none of them exists."""
    digest = hashlib.blake2b(digest_size=8)
    found = False
    for name in sorted(names):
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            found = True
            digest.update(f"{name}\0{topics.partition_count(name)}\0".encode() + topic_id.bytes)
    return int.from_bytes(digest.digest(), "big", signed=True) if found else 0
