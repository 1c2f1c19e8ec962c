"""Producer ids for this broker's clients, allocated by the controller a block at a time; no id is given out twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headrace.server.cluster.changes import Change
from headrace.server.cluster.decisions import allocate_producer_ids
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.node import ClusterNode
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

ALLOCATE_VERSION = 0
FAR = 1 << 32
"""Further than brokers' blocks ever move the next id between two looks at the metadata."""


class ProducerIds:
    def __init__(self, cluster: ClusterNode) -> None:
        self._cluster = cluster
        self._next = self._end = 0
        self._lock = asyncio.Lock()
        cluster.subscribe(self._changed)

    def _changed(self, old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        """A mirror link moves the cluster to ids that its source does not reach; what is left of an earlier block is not used."""
        if new.next_producer_id - old.next_producer_id > FAR:
            self._next = self._end

    async def next(self) -> int:
        async with self._lock:
            if self._next == self._end:
                try:
                    first, size = await self._allocate()
                except KafkaError as error:
                    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from None
                self._next, self._end = first, first + size
            taken = self._next
            self._next += 1
            return taken

    async def _allocate(self) -> tuple[int, int]:
        """(first id, how many) of a block that no other broker gets."""
        cluster = self._cluster
        if cluster.is_controller:
            decision = allocate_producer_ids(cluster.broker_id, cluster.broker_epoch)
            return await cluster.own_controller.decide(decision)
        request = AllocateProducerIdsRequest(cluster.broker_id, cluster.broker_epoch)
        reply = await cluster.ask_controller(request, ALLOCATE_VERSION)
        if reply.error_code:
            raise KafkaError(ErrorCode(reply.error_code), "The controller gave out no producer ids.")
        return reply.producer_id_start, reply.producer_id_len
