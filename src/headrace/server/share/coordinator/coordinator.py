"""The share coordinator of a broker: finds the shard of a key and runs the operation on it.

Every method raises the KafkaError to answer with, or returns a promise of the answer, known when it is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from headrace.clock import Clock
from headrace.server.cluster.ids import format_id
from headrace.server.cluster.internal_topics import SHARE_GROUP_STATE
from headrace.server.config.broker import BrokerConfig
from headrace.server.coordinator.log import CoordinatorLog
from headrace.server.coordinator.partitioning import partition_for
from headrace.server.coordinator.promise import Promise
from headrace.server.coordinator.runtime import CoordinatorRuntime
from headrace.server.coordinator.shard import Shard
from headrace.server.coordinator.write import Write
from headrace.server.replica.turn import Turn
from headrace.server.share.coordinator.records import ShareKey, ShareRecord
from headrace.server.share.coordinator.state import ShareState, StoredState, Summary, Topics
from headrace.server.share.states import StateBatch
from headrace.wire.compression import Codec
from headrace.wire.errors import KafkaError

logger = logging.getLogger(__name__)

ShareShard = Shard[ShareState, ShareRecord]


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    updates_per_snapshot: int = 500
    write_timeout_ms: int = 5000
    codec: Codec = Codec.NONE
    prune_interval_ms: int = 300_000
    cold_snapshot_interval_ms: int = 300_000

    @classmethod
    def of(cls, settings: BrokerConfig) -> ShareCoordinatorConfig:
        return cls(
            settings.integer("share.coordinator.snapshot.update.records.per.snapshot"),
            settings.integer("share.coordinator.write.timeout.ms"),
            Codec(settings.integer("share.coordinator.state.topic.compression.codec")),
            settings.integer("share.coordinator.state.topic.prune.interval.ms"),
            settings.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        )


def coordinator_key(key: ShareKey) -> str:
    """What FindCoordinator asks for, and what is hashed."""
    return f"{key.group_id}:{format_id(key.topic_id)}:{key.partition}"


class ShareCoordinator:
    def __init__(
        self,
        config: ShareCoordinatorConfig,
        clock: Clock,
        topics: Topics,
        turn: Turn,
        partition_count: Callable[[], int],
    ) -> None:
        self.config = config
        self._clock = clock
        self._topics = topics
        self._partition_count = partition_count
        self._runtime: CoordinatorRuntime[ShareState, ShareRecord] = CoordinatorRuntime(
            SHARE_GROUP_STATE, self._new_state, clock, turn, config.write_timeout_ms, config.codec
        )
        self._prune: dict[int, Callable[[int], object]] = {}
        """How to delete what lies before an offset, for each partition led."""

    def _new_state(self, shard: ShareShard) -> ShareState:
        state = ShareState(shard.timers, self._clock, self._topics, self.config.updates_per_snapshot)
        state.on_loaded = lambda: self._keep_short(shard, state)
        return state

    def lead(self, partition: int, log: CoordinatorLog, prune: Callable[[int], object]) -> None:
        self._prune[partition] = prune
        self._runtime.lead(partition, log)

    def resign(self, partition: int) -> None:
        self._prune.pop(partition, None)
        self._runtime.resign(partition)

    def close(self) -> None:
        self._runtime.close()

    def partition_for(self, key: ShareKey) -> int:
        return partition_for(coordinator_key(key), self._partition_count())

    def topics_deleted(self) -> None:
        for shard in self._runtime.loaded():
            shard.perform(shard.state.drop_deleted_topics, _log_failure)

    # Operations

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> Promise[None]:
        shard, scope = self._shard(key)
        return shard.write(partial(shard.state.initialize, key, state_epoch, start_offset), scope)

    def read(self, key: ShareKey, leader_epoch: int) -> Promise[StoredState]:
        shard, scope = self._shard(key)
        return shard.write(partial(shard.state.read, key, leader_epoch), scope)

    def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Promise[None]:
        shard, scope = self._shard(key)
        operation = partial(
            shard.state.write, key, state_epoch, leader_epoch, start_offset, complete_count, batches
        )
        return shard.write(operation, scope)

    def delete(self, key: ShareKey) -> Promise[None]:
        shard, scope = self._shard(key)
        return shard.write(partial(shard.state.delete, key), scope)

    def summary(self, key: ShareKey, leader_epoch: int) -> Promise[Summary]:
        shard, scope = self._shard(key)
        return shard.read(partial(shard.state.summary, key, leader_epoch), scope)

    def _shard(self, key: ShareKey) -> tuple[ShareShard, str]:
        scope = coordinator_key(key)
        return self._runtime.shard(partition_for(scope, self._partition_count())), scope

    # The log is kept short

    def _keep_short(self, shard: ShareShard, state: ShareState) -> None:
        config = self.config
        state.timers.set("prune", config.prune_interval_ms, partial(self._prune_log, shard, state))
        state.timers.set("refresh", config.cold_snapshot_interval_ms, partial(self._refresh, state))

    def _refresh(self, state: ShareState) -> Write[ShareRecord, object]:
        interval = self.config.cold_snapshot_interval_ms
        state.timers.set("refresh", interval, partial(self._refresh, state))
        return state.refresh(interval)

    def _prune_log(self, shard: ShareShard, state: ShareState) -> Write[ShareRecord, object]:
        state.timers.set("prune", self.config.prune_interval_ms, partial(self._prune_log, shard, state))
        needed = state.needed_from()
        offset = shard.log.end_offset if needed is None else needed

        def delete(error: KafkaError | None) -> None:
            # The state shows snapshots that another leader may not have; what was before them goes when they are committed.
            prune = self._prune.get(int(shard.name.rpartition("-")[2]))
            if error is not None or prune is None or offset <= shard.log.start_offset:
                return
            try:
                prune(offset)
            except KafkaError as refused:
                logger.warning("%s keeps records that it does not need: %s", shard.name, refused)

        return Write((), None, finish=delete)


def _log_failure(error: KafkaError | None) -> None:
    if error is not None:
        logger.warning("The state of deleted topics stays in %s: %s", SHARE_GROUP_STATE, error)
