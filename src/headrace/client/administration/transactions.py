"""Transactions: listing and describing them, and aborting those that would never end (KIP-664).

A transaction hangs in a partition when its coordinator no longer expects to write a marker there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headrace.client.administration import topics
from headrace.client.administration.errors import NotPossible, Refused, check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
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
    partitions: list[Partition]

    @property
    def duration_ms(self) -> int | None:
        return None if self.started_ms is None else max(0, _now_ms() - self.started_ms)


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer as a partition remembers it."""

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
    session: Session,
    *,
    states: Sequence[str] = (),
    producer_ids: Iterable[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[Listing]:
    """All transactional ids of the cluster, by name; raises NotPossible for a filter that a broker is too old for."""
    request = ListTransactionsRequest(list(states), list(producer_ids), longer_than_ms, pattern)
    needed = 2 if pattern is not None else 1 if longer_than_ms >= 0 else 0
    found = []
    for node in session.nodes:
        if needed and not session.offers(node.id).serves(ListTransactionsRequest, needed):
            raise NotPossible(f"Broker {node.id} is too old to filter transactions like this.")
        answer = session.call(request, node.id)
        check(answer.error_code)
        found += [
            Listing(each.transactional_id, node.id, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ]
    return sorted(found, key=lambda listing: listing.transactional_id)


def describe(session: Session, transactional_id: str) -> Description:
    """Raises Refused (TRANSACTIONAL_ID_NOT_FOUND) for an id that no producer has used."""
    answer = session.call_coordinator(
        TRANSACTION,
        transactional_id,
        DescribeTransactionsRequest([transactional_id]),
        lambda reply: reply.transaction_states[0].error_code,
    ).transaction_states[0]
    if answer.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise Refused(answer.error_code, f"There is no transactional id '{transactional_id}'.")
    check(answer.error_code)
    started = answer.transaction_start_time_ms
    return Description(
        transactional_id,
        session.coordinator(TRANSACTION, transactional_id),
        answer.producer_id,
        answer.producer_epoch,
        answer.transaction_state,
        answer.transaction_timeout_ms,
        started if started >= 0 else None,
        [(topic.topic, index) for topic in answer.topics for index in topic.partitions],
    )


def producers(session: Session, partition: Partition, broker_id: int | None = None) -> list[Producer]:
    """Those a partition remembers, according to its leader, or to the replica on one broker."""
    return list(
        _producers(session, {_leader(session, partition) if broker_id is None else broker_id: [partition]})
    )


def abort_at(session: Session, partition: Partition, start_offset: int) -> Producer | None:
    """Abort the transaction that began at this offset of the partition. Returns its producer; None if there is no such one."""
    for producer in producers(session, partition):
        if producer.start_offset == start_offset:
            abort(
                session, partition, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
            )
            return producer
    return None


def abort(
    session: Session, partition: Partition, producer_id: int, producer_epoch: int, coordinator_epoch: int
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
    answer = session.call(WriteTxnMarkersRequest([marker]), _leader(session, partition))
    code = answer.markers[0].topics[0].partitions[0].error_code
    if code == ErrorCode.INVALID_PRODUCER_EPOCH:
        raise Refused(code, f"Producer {producer_id} has gone beyond epoch {producer_epoch} by now.")
    if code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
        raise Refused(code, f"A coordinator with an epoch above {coordinator_epoch} has written since.")
    check(code)


def find_hanging(
    session: Session,
    *,
    topic: str | None = None,
    partition: int | None = None,
    broker_id: int | None = None,
    longer_than_ms: int,
) -> list[Producer]:
    """Open transactions, idle for longer than any transaction may be, that no coordinator will end."""
    wanted = _partitions(session, topic, partition, broker_id)
    oldest = _now_ms() - longer_than_ms
    candidates = [
        each
        for each in _producers(session, wanted)
        if each.start_offset is not None and each.last_timestamp < oldest
    ]
    if not candidates:
        return []
    names = {
        listing.producer_id: listing.transactional_id
        for listing in listings(session, producer_ids={each.producer_id for each in candidates})
    }
    expected = {producer_id: _expected(session, name) for producer_id, name in names.items()}
    return [
        each for each in candidates if (each.topic, each.partition) not in expected.get(each.producer_id, ())
    ]


def _expected(session: Session, transactional_id: str) -> set[Partition]:
    """Where the coordinator is still going to write a marker."""
    try:
        return set(describe(session, transactional_id).partitions)
    except Refused as refused:
        if refused.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return set()
        raise


def _partitions(
    session: Session, topic: str | None, partition: int | None, broker_id: int | None
) -> dict[int, list[Partition]]:
    """What to search, by the broker to ask: the leader, or the broker named, for the partitions it has replicas of."""
    names = [topic] if topic is not None else topics.names(session, internal=True)
    wanted: dict[int, list[Partition]] = {}
    for found in topics.describe(session, names):
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


def _producers(session: Session, wanted: dict[int, list[Partition]]) -> Iterator[Producer]:
    for broker_id, partitions in wanted.items():
        for start in range(0, len(partitions), _BATCH):
            asked: dict[str, TopicRequest] = {}
            for topic, index in partitions[start : start + _BATCH]:
                asked.setdefault(topic, TopicRequest(topic)).partition_indexes.append(index)
            answer = session.call(DescribeProducersRequest(list(asked.values())), broker_id)
            for described in answer.topics:
                for one in described.partitions:
                    check(one.error_code, one.error_message)
                    for state in one.active_producers:
                        offset = state.current_txn_start_offset
                        yield Producer(
                            described.name,
                            one.partition_index,
                            state.producer_id,
                            state.producer_epoch,
                            state.coordinator_epoch,
                            state.last_sequence,
                            state.last_timestamp,
                            offset if offset >= 0 else None,
                        )


def _leader(session: Session, partition: Partition) -> int:
    name, index = partition
    (topic,) = topics.describe(session, [name])
    if not 0 <= index < len(topic.partitions):
        raise _no_partition(name, index, len(topic.partitions))
    leader = topic.partitions[index].leader
    if leader is None:
        raise NotPossible(f"{name}-{index} has no leader now; try again when one of its brokers is back.")
    return leader


def _no_partition(topic: str, index: int, count: int) -> NotPossible:
    return NotPossible(f"Topic {topic} has no partition {index}; its partitions are 0 to {count - 1}.")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
