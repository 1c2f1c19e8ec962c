"""Cached encoded topic descriptions: describing thousands of partitions is slow in Python and requested often."""

from __future__ import annotations

import uuid

from headrace.server.cluster.image import MetadataImage, Topic


class EncodedTopics:
    """By listener and version, then by topic id; thrown away when the brokers change."""

    def __init__(self) -> None:
        self._brokers: object = None
        self._by_kind: dict[tuple[str, int], dict[uuid.UUID, tuple[Topic, bytes]]] = {}

    def of(self, image: MetadataImage, listener: str, version: int) -> dict[uuid.UUID, tuple[Topic, bytes]]:
        if self._brokers is not image.brokers:
            self._brokers = image.brokers
            self._by_kind.clear()
        kept = self._by_kind.setdefault((listener, version), {})
        if len(kept) > 2 * len(image.topics) + 64:
            # Topics that were deleted.
            kept.clear()
        return kept
