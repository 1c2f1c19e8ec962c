"""Transactions that one process opens and another ends: asking their coordinators, many at a time.

A task begins a transaction and writes in it; the driver, which knows it by transactional id, producer id and epoch,
commits or aborts it. Every step can be asked for again: ending what has ended the same way changes nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headrace.link.blocking import Connection
from headrace.link.cluster import TRANSACTION, Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.wire.errors import RETRIABLE, ErrorCode, KafkaError
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

FEATURE = "transaction.version"
IMPLICIT = 2
"""From this level on partitions join a transaction by being written to, and ending it raises the epoch (KIP-890)."""

STATE_TOPIC = "__transaction_state"
"""Who leads a partition of it coordinates the transactional ids that belong there."""

_LAST_EPOCH = 32767
_FENCING_TIMEOUT_MS = 1000
"""Of a transaction that will never begin; any that a broker allows."""

_ENDED_OTHERWISE = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer in one transaction."""

    transactional_id: str
    producer_id: int
    epoch: int


class TransactionState(enum.Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    """Aborted, by its timeout, by another producer with its id, or by its owner."""
    FORGOTTEN = "forgotten"
    """The coordinator knows nothing of the id any more (transactional.id.expiration.ms)."""


class SinkTransactions:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def offered(self, patience: float | None = None) -> bool:
        """Whether the brokers have all that a write exactly once needs (Kafka 3.0 or newer)."""
        connection = self._cluster.retry("reach a broker", self._cluster.any_broker, patience=patience)
        needed = (InitProducerIdRequest, EndTxnRequest, DescribeTransactionsRequest, ListTransactionsRequest)
        return all(connection.offer.serves(request, 0) for request in needed)

    @property
    def implicit(self) -> bool:
        """Whether partitions join a transaction by being written to."""
        connection = self._cluster.retry("reach a broker", self._cluster.any_broker)
        return connection.offer.features.get(FEATURE, 0) >= IMPLICIT

    def begin(self, transactional_id: str, timeout_ms: int) -> ProducerIdentity:
        """Take the id over: its previous producer is fenced, and its open transaction aborted."""
        return self.take_over([transactional_id], timeout_ms)[transactional_id]

    def take_over(self, transactional_ids: Iterable[str], timeout_ms: int) -> dict[str, ProducerIdentity]:
        def request(transactional_id: str) -> Request:
            return InitProducerIdRequest(transactional_id, timeout_ms)

        replies = self._ask_each(transactional_ids, request, InitProducerIdResponse, _error_code)
        for transactional_id, reply in replies.items():
            if reply.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise KafkaError(
                    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                    f"The brokers do not allow a transaction of {timeout_ms} ms: lower kafka.transaction.timeout.ms "
                    "or raise the brokers' transaction.max.timeout.ms.",
                )
            _check(reply.error_code, f"beginning the transaction {transactional_id}")
        return {
            transactional_id: ProducerIdentity(transactional_id, reply.producer_id, reply.producer_epoch)
            for transactional_id, reply in replies.items()
        }

    def fence(self, transactional_ids: Iterable[str]) -> None:
        """Abort what is open under these ids, and fence the producers that began it."""
        self.take_over(transactional_ids, _FENCING_TIMEOUT_MS)

    def add_partitions(self, identity: ProducerIdentity, partitions: Iterable[tuple[str, int]]) -> None:
        """Tell the coordinator which partitions will be written to, where it does not find out by itself."""
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for topic, partition in partitions:
            topics.setdefault(topic, AddPartitionsToTxnTopic(topic)).partitions.append(partition)

        def request(transactional_id: str) -> Request:
            return AddPartitionsToTxnRequest(
                transactional_id, identity.producer_id, identity.epoch, list(topics.values())
            )

        def failed(reply: AddPartitionsToTxnResponse) -> int:
            codes = [
                result.partition_error_code
                for topic in reply.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            ]
            # Where one partition is refused the others are "not attempted"; the refusal is what matters.
            refused = [code for code in codes if code not in (0, ErrorCode.OPERATION_NOT_ATTEMPTED)]
            return next(iter(refused or codes), 0)

        id_ = identity.transactional_id
        reply = self._ask_each([id_], request, AddPartitionsToTxnResponse, failed, newest=3)[id_]
        _check(failed(reply), f"adding partitions to the transaction {id_}")

    def end(self, identities: Sequence[ProducerIdentity], *, commit: bool) -> list[ProducerIdentity]:
        """Commit or abort; returns those that had ended the other way or belong to another producer by now."""
        by_id = {identity.transactional_id: identity for identity in identities}

        def request(transactional_id: str) -> Request:
            identity = by_id[transactional_id]
            return EndTxnRequest(transactional_id, identity.producer_id, identity.epoch, commit)

        newest = None if self.implicit else 4
        replies = self._ask_each(by_id, request, EndTxnResponse, _error_code, newest)
        otherwise = []
        for transactional_id, reply in replies.items():
            if ErrorCode(reply.error_code) in _ENDED_OTHERWISE:
                otherwise.append(by_id[transactional_id])
            else:
                _check(reply.error_code, f"ending the transaction {transactional_id}")
        return otherwise

    def states(self, identities: Sequence[ProducerIdentity]) -> dict[ProducerIdentity, TransactionState]:
        """What became of each transaction, provided that its transactional id was not used for another since."""
        by_id = {identity.transactional_id: identity for identity in identities}
        replies = self._ask_each(
            by_id,
            lambda transactional_id: DescribeTransactionsRequest([transactional_id]),
            DescribeTransactionsResponse,
            lambda reply: reply.transaction_states[0].error_code,
        )
        found = {}
        for transactional_id, reply in replies.items():
            described = reply.transaction_states[0]
            if described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                found[by_id[transactional_id]] = TransactionState.FORGOTTEN
                continue
            _check(described.error_code, f"looking at the transaction {transactional_id}")
            found[by_id[transactional_id]] = _state(
                by_id[transactional_id],
                described.transaction_state,
                described.producer_id,
                described.producer_epoch,
            )
        return found

    def open_ids(self, prefix: str, patience: float | None = None) -> list[str]:
        """Transactional ids with this beginning whose transactions are open, on all coordinators."""
        return self._cluster.retry(
            "list the open transactions", lambda: self._open_ids(prefix), patience=patience
        )

    def _open_ids(self, prefix: str) -> list[str]:
        """A broker lists what it coordinates at that moment, and says nothing of what has no coordinator: the list is
        whole only if every partition of the state has a leader and none moved while they were asked."""
        led = self._cluster.leaders_of(STATE_TOPIC)
        if led is not None and not set(led.leaders.values()) <= set(self._cluster.brokers()):
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"a partition of {STATE_TOPIC} has no leader at the moment",
            )
        found: list[str] = []
        for node in self._cluster.brokers() if led is None else sorted(set(led.leaders.values())):
            connection = self._cluster.node(node)
            reply = connection.call(ListTransactionsRequest(["Ongoing"]))
            _check(reply.error_code, f"listing the transactions of the broker at {connection.address}")
            found += [
                entry.transactional_id
                for entry in reply.transaction_states
                if entry.transactional_id.startswith(prefix)
            ]
        if self._cluster.leaders_of(STATE_TOPIC) != led:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"a partition of {STATE_TOPIC} got another leader meanwhile"
            )
        return found

    def _ask_each(
        self,
        transactional_ids: Iterable[str],
        request: Callable[[str], Request],
        reply: type[R],
        failed: Callable[[R], int],
        newest: int | None = None,
    ) -> dict[str, R]:
        """One request for each id, all on their way at once; again for those whose coordinator moves or is busy."""
        done: dict[str, R] = {}
        wanted = list(dict.fromkeys(transactional_ids))
        if not wanted:
            return done

        def ask() -> dict[str, R]:
            left = [transactional_id for transactional_id in wanted if transactional_id not in done]
            trouble: Exception | None = None
            for connection, ids in self._coordinators(left).items():
                try:
                    for transactional_id, answer in _pipeline(connection, ids, request, reply, newest):
                        code = ErrorCode(failed(answer))
                        if code in RETRIABLE:
                            trouble = KafkaError(code, f"{transactional_id}: {code.name}")
                        else:
                            done[transactional_id] = answer
                except BrokerUnavailable as error:
                    trouble = error
            if trouble is not None:
                raise trouble
            return done

        return self._cluster.retry("reach the coordinators of the transactions", ask)

    def _coordinators(self, transactional_ids: Sequence[str]) -> dict[Connection, list[str]]:
        """Connections to the coordinators, each with its ids."""
        connection = self._cluster.any_broker()
        found: dict[Connection, list[str]] = {}
        if connection.offer.serves(FindCoordinatorRequest, 4):
            request = FindCoordinatorRequest("", TRANSACTION, list(transactional_ids))
            for answer in connection.call(request).coordinators:
                _check(answer.error_code, f"finding the coordinator of {answer.key}")
                at = self._cluster.connection((answer.host, answer.port))
                found.setdefault(at, []).append(answer.key)
            return found
        for transactional_id in transactional_ids:
            one = connection.call(FindCoordinatorRequest(transactional_id, TRANSACTION), 3)
            _check(one.error_code, f"finding the coordinator of {transactional_id}")
            at = self._cluster.connection((one.host, one.port))
            found.setdefault(at, []).append(transactional_id)
        return found


def _pipeline(
    connection: Connection,
    transactional_ids: Sequence[str],
    request: Callable[[str], Request],
    reply: type[R],
    newest: int | None,
) -> list[tuple[str, R]]:
    sent = []
    for transactional_id in transactional_ids:
        message = request(transactional_id)
        version = connection.offer.version_of(type(message))
        if newest is not None:
            version = min(version, newest)
        sent.append((transactional_id, version, connection.send(message, version)))
    return [
        (transactional_id, connection.receive(reply, version, number))
        for transactional_id, version, number in sent
    ]


def _error_code(reply: InitProducerIdResponse | EndTxnResponse) -> int:
    return reply.error_code


def _check(code: int, what: str) -> None:
    if code:
        error = ErrorCode(code)
        raise KafkaError(error, f"{what[0].upper()}{what[1:]} failed: {error.name}.")


def _state(identity: ProducerIdentity, name: str, producer_id: int, epoch: int) -> TransactionState:
    """A commit raises the epoch by one from transaction.version 2 on, or begins a new producer id when none is left."""
    same = producer_id == identity.producer_id
    if name == "Ongoing":
        return TransactionState.OPEN if same and epoch == identity.epoch else TransactionState.ABORTED
    if name in ("PrepareCommit", "CompleteCommit"):
        following = same and epoch in (identity.epoch, identity.epoch + 1)
        begun_anew = not same and epoch == 0 and identity.epoch >= _LAST_EPOCH - 1
        return TransactionState.COMMITTED if following or begun_anew else TransactionState.ABORTED
    return TransactionState.ABORTED
