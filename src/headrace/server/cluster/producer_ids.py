"""Producer ids for this broker's clients, taken from the controller a block at a time; none is given twice."""

from __future__ import annotations

import asyncio

from headrace.server.cluster.node import ClusterNode
from headrace.wire.errors import ErrorCode, KafkaError


class ProducerIds:
    def __init__(self, cluster: ClusterNode) -> None:
        self._cluster = cluster
        self._next = self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        async with self._lock:
            if self._next == self._end:
                try:
                    first, size = await self._cluster.admin.allocate_producer_ids()
                except KafkaError as error:
                    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from None
                self._next, self._end = first, first + size
            taken = self._next
            self._next += 1
            return taken
