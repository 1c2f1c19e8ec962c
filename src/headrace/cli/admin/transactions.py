"""Transactions: which there are, what they have open, and ending those that nobody will end (KIP-664).

A transaction hangs in a partition when its coordinator no longer expects to write a marker there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headrace.cli.admin import topics
from headrace.cli.cluster.connection import Cluster
from headrace.cli.failure import Failure, did_you_mean
from headrace.cli.raw.refused import RequestRefused, check
from headrace.cli.raw.requests import ask_coordinator, find_coordinator
from headrace.link.cluster import TRANSACTION
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
)
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
)
_BATCH = 500

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Listing:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class Description:
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: list[TopicPartition]

    @property
    def duration_ms(self) -> int | None:
        return None if self.started_ms is None else max(0, _now_ms() - self.started_ms)


@dataclass(frozen=True, slots=True)
class Producer:
    """What a partition remembers of a producer."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp: int
    start_offset: int | None  # of the transaction that is open

    @property
    def open_minutes(self) -> int:
        return max(0, _now_ms() - self.last_timestamp) // 60_000


def listings(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Iterable[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[Listing]:
    """All transactional ids of the cluster, by name; a filter that a broker is too old for raises Failure."""
    request = ListTransactionsRequest(list(states), list(producer_ids), longer_than_ms, pattern)
    found = []
    for node in cluster.nodes:
        with cluster.broker(node.id) as broker:
            offered = broker.versions.get(request.API_KEY, (0, -1))[1]
            if (longer_than_ms >= 0 and offered < 1) or (pattern is not None and offered < 2):
                raise Failure(f"Broker {node.id} is too old to filter transactions like this.")
            answer = broker.ask(request)
        check(answer.error_code)
        found += [
            Listing(each.transactional_id, node.id, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ]
    return sorted(found, key=lambda listing: listing.transactional_id)


def describe(cluster: Cluster, transactional_id: str) -> Description:
    """Raises RequestRefused (TRANSACTIONAL_ID_NOT_FOUND) for an id that nobody has used."""
    answer = ask_coordinator(
        cluster,
        transactional_id,
        DescribeTransactionsRequest([transactional_id]),
        lambda reply: reply.transaction_states[0].error_code,
        TRANSACTION,
    ).transaction_states[0]
    if answer.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise RequestRefused(answer.error_code, f"There is no transactional id '{transactional_id}'.")
    check(answer.error_code)
    started = answer.transaction_start_time_ms
    return Description(
        transactional_id,
        find_coordinator(cluster, transactional_id, TRANSACTION),
        answer.producer_id,
        answer.producer_epoch,
        answer.transaction_state,
        answer.transaction_timeout_ms,
        started if started >= 0 else None,
        [(topic.topic, index) for topic in answer.topics for index in topic.partitions],
    )


def with_hint(cluster: Cluster, refused: RequestRefused, transactional_id: str) -> Failure:
    """The refusal with the nearest id there is, or with where to look."""
    if refused.error is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return refused
    known = [listing.transactional_id for listing in listings(cluster)]
    hint = did_you_mean(transactional_id, known) or " 'headrace transactions list' shows what there is."
    return Failure(refused.sentence + hint)


def producers(cluster: Cluster, partition: TopicPartition, broker_id: int | None = None) -> list[Producer]:
    """Those a partition remembers, as its leader (or the replica on one broker) tells."""
    return list(
        _producers(cluster, {_leader(cluster, partition) if broker_id is None else broker_id: [partition]})
    )


def abort_at(cluster: Cluster, partition: TopicPartition, start_offset: int) -> Producer:
    """End the transaction that began at this offset of the partition; tells whose it was."""
    for producer in producers(cluster, partition):
        if producer.start_offset == start_offset:
            abort(
                cluster, partition, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
            )
            return producer
    raise Failure(
        f"No open transaction of {partition[0]}-{partition[1]} starts at offset {start_offset}; "
        f"'headrace transactions find-hanging --topic {partition[0]}' shows those that hang."
    )


def abort(
    cluster: Cluster, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """Write an abort marker into one partition."""
    topic, index = partition
    marker = WritableTxnMarker(
        producer_id,
        producer_epoch,
        False,
        topics=[WritableTxnMarkerTopic(topic, [index])],
        # A producer that never ended a transaction shows -1; no leader epoch is lower than 0.
        coordinator_epoch=max(0, coordinator_epoch),
    )
    with cluster.broker(_leader(cluster, partition)) as broker:
        answer = broker.ask(WriteTxnMarkersRequest([marker]))
    code = answer.markers[0].topics[0].partitions[0].error_code
    if code == ErrorCode.INVALID_PRODUCER_EPOCH:
        raise RequestRefused(code, f"Producer {producer_id} has gone beyond epoch {producer_epoch} by now.")
    if code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
        raise RequestRefused(
            code, f"A coordinator with an epoch above {coordinator_epoch} has written since."
        )
    check(code)


def find_hanging(
    cluster: Cluster,
    *,
    topic: str | None = None,
    partition: int | None = None,
    broker_id: int | None = None,
    longer_than_ms: int,
) -> list[Producer]:
    """Open transactions, idle for longer than any transaction may be, that no coordinator will end."""
    wanted = _partitions(cluster, topic, partition, broker_id)
    oldest = _now_ms() - longer_than_ms
    candidates = [
        each
        for each in _producers(cluster, wanted)
        if each.start_offset is not None and each.last_timestamp < oldest
    ]
    if not candidates:
        return []
    names = {
        listing.producer_id: listing.transactional_id
        for listing in listings(cluster, producer_ids={each.producer_id for each in candidates})
    }
    expected = {producer_id: _expected(cluster, name) for producer_id, name in names.items()}
    return [
        each for each in candidates if (each.topic, each.partition) not in expected.get(each.producer_id, ())
    ]


def _expected(cluster: Cluster, transactional_id: str) -> set[TopicPartition]:
    """Where the coordinator is still going to write a marker."""
    try:
        return set(describe(cluster, transactional_id).partitions)
    except RequestRefused as refused:
        if refused.error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return set()
        raise


def _partitions(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None
) -> dict[int, list[TopicPartition]]:
    """What to search, by the broker to ask: the leader, or the broker that was named for what it has replicas of."""
    names = [topic] if topic is not None else topics.names(cluster, internal=True)
    wanted: dict[int, list[TopicPartition]] = {}
    for found in topics.describe(cluster, names):
        if partition is not None and partition >= len(found.partitions):
            raise _no_partition(found.name, partition, len(found.partitions))
        for each in found.partitions:
            if partition is not None and each.id != partition:
                continue
            if broker_id is not None:
                if broker_id in each.replicas:
                    wanted.setdefault(broker_id, []).append((found.name, each.id))
            elif each.leader is not None:
                wanted.setdefault(each.leader, []).append((found.name, each.id))
    return wanted


def _producers(cluster: Cluster, wanted: dict[int, list[TopicPartition]]) -> Iterator[Producer]:
    for broker_id, partitions in wanted.items():
        with cluster.broker(broker_id) as broker:
            for start in range(0, len(partitions), _BATCH):
                asked: dict[str, TopicRequest] = {}
                for topic, index in partitions[start : start + _BATCH]:
                    asked.setdefault(topic, TopicRequest(topic)).partition_indexes.append(index)
                request = DescribeProducersRequest(list(asked.values()))
                answer = broker.ask(request)
                for told in answer.topics:
                    for one in told.partitions:
                        check(one.error_code, one.error_message)
                        for state in one.active_producers:
                            offset = state.current_txn_start_offset
                            yield Producer(
                                told.name,
                                one.partition_index,
                                state.producer_id,
                                state.producer_epoch,
                                state.coordinator_epoch,
                                state.last_sequence,
                                state.last_timestamp,
                                offset if offset >= 0 else None,
                            )


def _leader(cluster: Cluster, partition: TopicPartition) -> int:
    name, index = partition
    (topic,) = topics.describe(cluster, [name])
    if not 0 <= index < len(topic.partitions):
        raise _no_partition(name, index, len(topic.partitions))
    leader = topic.partitions[index].leader
    if leader is None:
        raise Failure(f"{name}-{index} has no leader now; try again when one of its brokers is back.")
    return leader


def _no_partition(topic: str, index: int, count: int) -> Failure:
    return Failure(f"Topic {topic} has no partition {index}; its partitions are 0 to {count - 1}.")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
