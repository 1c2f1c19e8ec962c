"""Batches to their leaders: numbered, several requests on their way at once, sent again while leaders move.

What `flush` has returned from is acknowledged by the brokers. With an idempotent producer a batch that is sent again
is recognised; order within a partition holds in any case, because after trouble a partition's batches go one by one.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.link.blocking import Connection
from headrace.link.cluster import Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.spark.sink_options import WriteOptions
from headrace.spark.sink_records import Draft
from headrace.spark.sink_transactions import ProducerIdentity, SinkTransactions
from headrace.wire.batch import (
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    advance_sequence,
)
from headrace.wire.errors import RETRIABLE, ErrorCode, KafkaError
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TopicPartition = tuple[str, int]

_WITHOUT_IMPLICIT_TRANSACTIONS = 11
_NEWEST_BY_NAME = 12
"""Later versions name topics by id; a name is what the rows have."""


@dataclass(frozen=True, slots=True)
class Batch:
    topic: str
    partition: int
    ordinal: int
    """Batches are counted as they are made, and keep that order whatever happens."""
    data: bytes

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class _Sent:
    number: int
    version: int
    batches: list[Batch]


class SinkProducer:
    """Used by one task. With `identity` everything is written inside that producer's transaction."""

    def __init__(
        self,
        cluster: Cluster,
        options: WriteOptions,
        identity: ProducerIdentity | None = None,
        transactions: SinkTransactions | None = None,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._identity = identity
        self._transactions = transactions
        self._explicit = transactions is not None and not transactions.implicit
        self._added: set[TopicPartition] = set()
        if identity is not None:
            self._producer_id, self._epoch = identity.producer_id, identity.epoch
        elif options.idempotent:
            self._producer_id, self._epoch = self._new_producer_id()
        else:
            self._producer_id, self._epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        self._sequences: dict[TopicPartition, int] = {}
        self._ordinals = itertools.count()
        self._on_the_way: dict[Connection, deque[_Sent]] = {}
        self._failed: list[Batch] = []
        self._why: Exception | None = None
        self.offsets: dict[TopicPartition, int] = {}
        """Where the last acknowledged batch of each partition begins."""

    def send(self, drafts: Iterable[Draft]) -> None:
        """Send batches in the order given; returns before they are acknowledged."""
        waiting = [self._seal(draft) for draft in drafts]
        if self._explicit:
            self._announce({batch.place for batch in waiting})
        while waiting:
            waiting = self._send_one_each(waiting)
            if self._failed:
                self._recover()

    def flush(self) -> None:
        """Wait until the brokers have everything."""
        self._drain()
        while self._failed:
            self._recover()

    def close(self) -> None:
        """Leave no answer behind on the connections that other tasks of this process will use."""
        for connection, sent in self._on_the_way.items():
            if sent:
                connection.close()
        self._on_the_way.clear()

    def _seal(self, draft: Draft) -> Batch:
        size = HEADER_SIZE + len(draft.records)
        if size > self._options.largest_request:
            one = "A row" if draft.count == 1 else f"A batch of {draft.count} rows"
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{one} for {draft.topic}-{draft.partition} takes up {size} bytes, more than the "
                f"{self._options.largest_request} of kafka.max.request.size: raise it, and the topic's "
                "max.message.bytes, or write smaller rows.",
            )
        place = (draft.topic, draft.partition)
        sequence = NO_SEQUENCE
        if self._producer_id != NO_PRODUCER_ID:
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = advance_sequence(sequence, draft.count)
        data = draft.seal(self._producer_id, self._epoch, sequence, self._identity is not None)
        return Batch(draft.topic, draft.partition, next(self._ordinals), data)

    def _announce(self, places: set[TopicPartition]) -> None:
        new = places - self._added
        if new and self._transactions is not None and self._identity is not None:
            self._transactions.add_partitions(self._identity, sorted(new))
            self._added |= new

    # Sending. A request holds at most one batch of a partition, as the protocol wants it.

    def _send_one_each(self, waiting: list[Batch]) -> list[Batch]:
        """Send the first batch of every partition, in as few requests as their size allows; returns the rest."""
        chosen: dict[TopicPartition, Batch] = {}
        rest = []
        for batch in waiting:
            if batch.place in chosen:
                rest.append(batch)
            else:
                chosen[batch.place] = batch
        try:
            grouped = self._cluster.by_leader(chosen)
        except (BrokerUnavailable, KafkaError) as error:
            self._fail(list(chosen.values()), error)
            return rest
        for connection, places in grouped.items():
            request: list[Batch] = []
            size = 0
            for topic, partition in places:
                batch = chosen[topic, partition]
                if request and size + len(batch.data) > self._options.largest_request:
                    self._send_request(connection, request)
                    request, size = [], 0
                request.append(batch)
                size += len(batch.data)
            self._send_request(connection, request)
        return rest

    def _send_request(self, connection: Connection, batches: list[Batch]) -> None:
        while len(self._on_the_way.get(connection, ())) >= self._options.in_flight:
            self._receive(connection)  # or lose it, and all that is on its way
        if any(failed.place == batch.place for failed in self._failed for batch in batches):
            self._failed += batches  # they must not overtake
            return
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            data = PartitionProduceData(batch.partition, batch.data)
            topics.setdefault(batch.topic, TopicProduceData(batch.topic)).partition_data.append(data)
        request = ProduceRequest(
            None if self._identity is None else self._identity.transactional_id,
            self._options.acks,
            int(self._cluster.settings.request_timeout * 1000),
            list(topics.values()),
        )
        try:
            newest = _WITHOUT_IMPLICIT_TRANSACTIONS if self._explicit else _NEWEST_BY_NAME
            version = min(connection.offer.version_of(ProduceRequest), newest)
            number = connection.send(request, version)
        except BrokerUnavailable as error:
            self._lose(connection, error)
            self._fail(batches, error)
            return
        if self._options.acks != 0:
            self._on_the_way.setdefault(connection, deque()).append(_Sent(number, version, batches))

    # Answers.

    def _receive(self, connection: Connection) -> None:
        """Take the oldest answer of a connection."""
        sent = self._on_the_way[connection][0]
        try:
            reply = connection.receive(ProduceResponse, sent.version, sent.number)
        except BrokerUnavailable as error:
            self._lose(connection, error)
            return
        self._on_the_way[connection].popleft()
        answers = {
            (topic.name, partition.index): partition
            for topic in reply.responses
            for partition in topic.partition_responses
        }
        for batch in sent.batches:
            self._settle(batch, answers[batch.place])

    def _settle(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        code = ErrorCode(answer.error_code)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.offsets[batch.place] = answer.base_offset
            return
        said = answer.error_message or code.name
        error = KafkaError(code, f"Writing to {batch.topic}-{batch.partition} failed: {said}")
        follows_a_failure = any(failed.place == batch.place for failed in self._failed)
        if code in RETRIABLE or (
            code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and follows_a_failure  # it waits for the other
        ):
            self._fail([batch], error)
        elif code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            raise KafkaError(
                code,
                f"The broker refuses a batch of {len(batch.data)} bytes for {batch.topic}-{batch.partition}: raise the "
                "topic's max.message.bytes, or set kafka.batch.size (and write rows) below it.",
            )
        elif code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED) and self._identity:
            raise KafkaError(
                code,
                f"Another attempt of this task took over its transaction {self._identity.transactional_id}, or it was "
                "open for longer than kafka.transaction.timeout.ms.",
            )
        else:
            raise error

    def _fail(self, batches: list[Batch], why: Exception) -> None:
        if isinstance(why, KafkaError) and why.code not in RETRIABLE | {
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        }:
            raise why
        self._failed += batches
        self._why = why

    def _lose(self, connection: Connection, error: BrokerUnavailable) -> None:
        """A connection is gone, and the fate of what was in flight is unknown."""
        lost = self._on_the_way.pop(connection, deque())
        self._fail([batch for sent in lost for batch in sent.batches], error)

    def _drain(self) -> None:
        for connection in list(self._on_the_way):
            while self._on_the_way.get(connection):
                self._receive(connection)

    # After trouble.

    def _recover(self) -> None:
        """Bring everything that failed to its leader, a partition's batches one by one and in order."""
        deadline = time.monotonic() + self._options.delivery_timeout
        pause = self._cluster.settings.retry_backoff
        self._drain()
        while self._failed:
            if time.monotonic() + pause > deadline:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"Rows could not be written within {self._options.delivery_timeout:g} s "
                    f"(kafka.delivery.timeout.ms): {self._why}",
                )
            time.sleep(pause)
            pause = min(pause * 2, self._cluster.settings.retry_backoff_max)
            for topic in {batch.topic for batch in self._failed}:
                self._cluster.forget(topic)
            waiting, self._failed = sorted(self._failed, key=lambda batch: batch.ordinal), []
            while waiting and not self._failed:
                waiting = self._send_one_each(waiting)
                self._drain()
            self._failed += waiting

    def _new_producer_id(self) -> tuple[int, int]:
        def ask() -> tuple[int, int]:
            request = InitProducerIdRequest(None, 0)
            reply = self._cluster.any_broker().call(request)
            if reply.error_code:
                code = ErrorCode(reply.error_code)
                raise KafkaError(code, f"No producer id was given: {code.name}")
            return reply.producer_id, reply.producer_epoch

        return self._cluster.retry("get a producer id", ask)
