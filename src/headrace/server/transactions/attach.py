"""Puts the transaction coordinator into a broker: it follows the leaders of `__transaction_state`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from headrace.clock import Clock
from headrace.server.cluster.features import TRANSACTION_VERSION, level
from headrace.server.cluster.internal_topics import TRANSACTION_STATE
from headrace.server.cluster.peers import Peers
from headrace.server.config.broker import BrokerConfig
from headrace.server.coordinator.leader_log import LeaderLog
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.replica.partition import Partition
from headrace.server.replica.replicas import Replicas
from headrace.server.replica.turn import Turn
from headrace.server.transactions.coordinator import TransactionConfig, TransactionCoordinator
from headrace.server.transactions.enlisting import Enlisting
from headrace.server.transactions.markers import MarkerSender, MarkerWriter
from headrace.server.transactions.records import FLEXIBLE


@dataclass(frozen=True, slots=True)
class Transactions:
    """What handlers need for transactions."""

    coordinator: TransactionCoordinator
    markers: MarkerWriter
    enlisting: Enlisting


def attach_transactions(
    config: BrokerConfig,
    clock: Clock,
    replicas: Replicas,
    groups: GroupCoordinator,
    peers: Peers,
    new_producer_id: Callable[[], Awaitable[int]],
    disk: Executor,
    turn: Turn,
) -> Transactions:
    def partition_count() -> int | None:
        topic = replicas.image.topics.get(TRANSACTION_STATE)
        return len(topic.partitions) if topic is not None else None

    def record_version() -> int:
        return FLEXIBLE if level(replicas.image, TRANSACTION_VERSION) >= 1 else 0

    writer = MarkerWriter(replicas, groups, clock)
    sender = MarkerSender(replicas.broker_id, lambda: replicas.image, writer, peers, clock)
    coordinator = TransactionCoordinator(
        TransactionConfig.of(config),
        clock,
        partition_count,
        new_producer_id,
        sender.send,
        turn,
        record_version,
    )
    replicas.listen(TRANSACTION_STATE, _Leadership(coordinator, disk))
    coordinator.start()
    enlisting = Enlisting(
        replicas.broker_id,
        lambda: replicas.image,
        coordinator,
        peers,
        clock,
        backoff_ms=config.integer("add.partitions.to.txn.retry.backoff.ms"),
        longest_backoff_ms=config.integer("add.partitions.to.txn.retry.backoff.max.ms"),
    )
    return Transactions(coordinator, writer, enlisting)


class _Leadership:
    def __init__(self, coordinator: TransactionCoordinator, disk: Executor) -> None:
        self._coordinator = coordinator
        self._disk = disk

    def elected(self, partition: Partition) -> None:
        self._coordinator.lead(partition.index, LeaderLog(partition, self._disk), partition.leader_epoch)

    def resigned(self, partition: Partition) -> None:
        self._coordinator.resign(partition.index)
