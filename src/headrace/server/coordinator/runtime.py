"""The shards of one coordinator topic on this broker: loaded when leadership arrives, dropped when it goes.

While a shard's log is replayed its requests get COORDINATOR_LOAD_IN_PROGRESS; for a partition led elsewhere
they get NOT_COORDINATOR. Replaying gives way to other work every few milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Generic

from headrace.clock import Clock
from headrace.server.coordinator.log import CoordinatorLog
from headrace.server.coordinator.shard import S, Shard
from headrace.server.coordinator.write import R
from headrace.server.replica.turn import Turn
from headrace.wire.batch import NO_PRODUCER_ID, iterate_batches
from headrace.wire.codec import WireError
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import read_end_transaction_marker
from headrace.wire.records import decode_records

logger = logging.getLogger(__name__)

LOAD_BYTES = 1 << 20
LOAD_SLICE_SECONDS = 0.005
LOAD_RETRY_SECONDS = 1.0


class CoordinatorRuntime(Generic[S, R]):
    def __init__(
        self,
        topic: str,
        new_state: Callable[[Shard[S, R]], S],
        clock: Clock,
        turn: Turn,
        commit_timeout_ms: int,
        codec: Codec = Codec.NONE,
    ) -> None:
        self.topic = topic
        self._new_state = new_state
        self._clock = clock
        self._turn = turn
        self._commit_timeout_ms = commit_timeout_ms
        self._codec = codec
        self._shards: dict[int, Shard[S, R]] = {}
        self._loads: dict[int, asyncio.Task[None]] = {}

    def lead(self, partition: int, log: CoordinatorLog) -> None:
        """This broker has become leader, or leader again in a newer epoch: replay from the log."""
        self.resign(partition)
        shard: Shard[S, R] = Shard(
            f"{self.topic}-{partition}", log, self._clock, self._turn, self._commit_timeout_ms, self._codec
        )
        self._shards[partition] = shard
        if log.start_offset == log.end_offset:
            shard.open(self._new_state(shard))  # Nothing to replay: a new topic serves at once.
            return
        task = asyncio.get_running_loop().create_task(self._load(shard))
        self._loads[partition] = task
        task.add_done_callback(
            lambda done: self._loads.pop(partition) if self._is_load(partition, done) else None
        )

    def resign(self, partition: int) -> None:
        load = self._loads.pop(partition, None)
        if load is not None:
            load.cancel()
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.close()

    def close(self) -> None:
        for partition in list(self._shards):
            self.resign(partition)

    def shard(self, partition: int) -> Shard[S, R]:
        """The shard, loaded; NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS otherwise."""
        shard = self._shards.get(partition)
        if shard is None:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR,
                f"This broker does not lead {self.topic}-{partition}; ask FindCoordinator again.",
            )
        shard.state  # noqa: B018  raises while it is loading
        return shard

    def shards(self) -> Iterator[Shard[S, R]]:
        """Every shard led here, with nothing of it in an open batch; COORDINATOR_LOAD_IN_PROGRESS if one is not loaded
        yet."""
        for partition in list(self._shards):
            shard = self.shard(partition)
            shard.flush()
            yield shard

    def loaded(self) -> Iterator[Shard[S, R]]:
        """The same for those that are loaded; the others learn of a change when they are. The caller may wait in between."""
        for partition, shard in list(self._shards.items()):
            if partition not in self._loads and self._shards.get(partition) is shard:
                shard.flush()
                yield shard

    def states(self) -> Iterator[S]:
        """The state of every shard that is loaded, for looking at it: what an open batch holds is not in it yet."""
        for partition, shard in list(self._shards.items()):
            if partition not in self._loads and self._shards.get(partition) is shard:
                yield shard.state

    @property
    def loading(self) -> int:
        """How many shards are being loaded."""
        return len(self._loads)

    def _is_load(self, partition: int, task: asyncio.Task[None]) -> bool:
        return self._loads.get(partition) is task

    async def _load(self, shard: Shard[S, R]) -> None:
        while True:
            try:
                state = self._new_state(shard)
                await self._replay(shard.log, state)
            except (KafkaError, OSError) as error:
                logger.error("%s cannot be loaded, trying again: %s", shard.name, error)
                await self._clock.sleep(LOAD_RETRY_SECONDS)
            else:
                shard.open(state)
                return

    async def _replay(self, log: CoordinatorLog, state: S) -> None:
        position = log.start_offset
        while position < log.end_offset:
            chunk = memoryview(await log.read(position, LOAD_BYTES))
            if not chunk:
                return  # compaction has left nothing up to the end
            started, before = self._clock.monotonic(), position
            for start, header in iterate_batches(chunk):
                if header.next_offset <= position:
                    continue
                batch = chunk[start : start + header.size]
                if header.is_control:
                    marker = read_end_transaction_marker(batch, header)
                    if marker is not None:
                        state.end_transaction(header.producer_id, marker.committed)
                else:
                    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                    for record in decode_records(batch, header):
                        if record.offset >= position and record.key is not None:
                            self._replay_record(state, record.key, record.value, record.offset, producer_id)
                position = header.next_offset
                if self._clock.monotonic() - started > LOAD_SLICE_SECONDS:
                    await self._clock.sleep(0)
                    started = self._clock.monotonic()
            if position == before:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"Offset {position} cannot be read though the log of {self.topic} ends at {log.end_offset}.",
                )

    def _replay_record(
        self, state: S, key: bytes, value: bytes | None, offset: int, producer_id: int
    ) -> None:
        try:
            record = state.decode(key, value)
        except WireError as error:
            logger.error("%s offset %d is skipped, it cannot be read: %s", self.topic, offset, error)
            return
        if record is not None:
            state.replay(record, offset, producer_id)
