"""Committing a query's offsets to a consumer group, so that ordinary lag tools see it.

Spark's checkpoint remains the truth; offsets committed here are for monitoring. A commit that fails is logged
and stops nothing.
"""

from __future__ import annotations

import logging
import time

from headrace.link.cluster import GROUP, Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.spark.offsets import Offsets
from headrace.wire.errors import RETRIABLE, ErrorCode, KafkaError
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

log = logging.getLogger(__name__)

_PATIENCE = 5.0
"""Seconds that a query waits for a coordinator before it continues without one."""

_AFTER_REFUSAL = 30.0
"""Seconds before it asks again for what was refused: Spark looks for new records a hundred times a second."""


class GroupOffsets:
    """Keeps what was committed last and commits only what has changed."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._committed: Offsets = {}
        self._again_at = 0.0

    def commit(self, offsets: Offsets) -> None:
        changed = {p: offset for p, offset in offsets.items() if self._committed.get(p) != offset}
        if not changed or time.monotonic() < self._again_at:
            return
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for partition, offset in sorted(changed.items()):
            entry = OffsetCommitRequestPartition(partition.partition, offset, -1, "")
            topics.setdefault(partition.topic, []).append(entry)
        request = OffsetCommitRequest(
            self._group, topics=[OffsetCommitRequestTopic(name, entries) for name, entries in topics.items()]
        )
        try:
            self._cluster.call_coordinator(GROUP, self._group, request, _first_error, _PATIENCE)
        except (BrokerUnavailable, KafkaError) as error:
            log.warning(
                "headrace: the offsets could not be committed to the group %r: %s", self._group, _why(error)
            )
            if isinstance(error, KafkaError) and error.code not in RETRIABLE:
                self._again_at = time.monotonic() + _AFTER_REFUSAL
            return
        self._committed.update(changed)


def _first_error(reply: OffsetCommitResponse) -> int:
    codes = (part.error_code for topic in reply.topics for part in topic.partitions)
    return next((code for code in codes if code), 0)


def _why(error: Exception) -> str:
    if isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_MEMBER_ID:
        return "it has consumers of its own; give the query a group that nobody else uses"
    return str(error)
