"""The share partitions of this broker: made when a session first asks for one, dropped when the last session has left it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from headrace.server.replica.replicas import Replicas
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.partition import Means, SharePartition, not_leader
from headrace.wire.errors import ErrorCode, KafkaError


class SharePartitions:
    def __init__(self, replicas: Replicas, means: Means) -> None:
        self._replicas = replicas
        self._means = means
        self._known: dict[ShareKey, SharePartition] = {}

    def __iter__(self) -> Iterator[SharePartition]:
        return iter(list(self._known.values()))

    def find(self, group_id: str, topic_id: uuid.UUID, index: int) -> SharePartition:
        """Perhaps still loading. KafkaError unless this broker leads the partition."""
        key = ShareKey(group_id, topic_id, index)
        known = self._known.get(key)
        if known is not None:
            if known.is_current:
                return known
            known.leave(not_leader(known.partition))
        partition = self._replicas.find(topic_id.bytes, index, by_id=True)
        if not partition.is_leader:
            raise not_leader(partition)
        if not partition.has_caught_up:
            # Its high watermark may be below one that the last leader gave out.
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} has only just changed its leader."
            )
        made = self._known[key] = SharePartition(key, partition, self._means, self._gone)
        return made

    def known(self, group_id: str, topic_id: uuid.UUID, index: int) -> SharePartition | None:
        return self._known.get(ShareKey(group_id, topic_id, index))

    def close(self) -> None:
        for partition in self:
            partition.leave(not_leader(partition.partition))

    def _gone(self, partition: SharePartition) -> None:
        if self._known.get(partition.key) is partition:
            del self._known[partition.key]
