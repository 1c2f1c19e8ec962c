"""Fetching a run of offsets from a partition's leader, block by block, the next asked for before this one is used.

A `Block` holds whole batches only, without control batches and, when reading committed records, without those of
aborted transactions. Leaders may move and brokers restart; offsets that are gone are reported to the caller.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.link.blocking import Connection
from headrace.link.cluster import PATIENCE_WITH_UNKNOWN, Cluster, lost_leader
from headrace.link.errors import BrokerUnavailable
from headrace.spark.decode import Located
from headrace.spark.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from headrace.wire.batch import iterate_batches
from headrace.wire.errors import RETRIABLE, ErrorCode, KafkaError
from headrace.wire.markers import read_end_transaction_marker
from headrace.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.wire.schema import ZERO_UUID

_TOPIC_IDS = 13
_LARGEST_FETCH = 2**31 - 1
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    block_bytes: int
    committed: bool = False
    max_wait_ms: int = 500
    poll_timeout: float = 120.0
    """How long to wait for records that should be there (kafkaConsumer.pollTimeoutMs)."""


class OffsetsGone(Exception):
    """Records at `position` are not there any more; the partition begins at `first` and ends at `last`."""

    def __init__(self, partition: TopicPartition, position: int, first: int, last: int) -> None:
        super().__init__(partition, position, first, last)
        self.partition = partition
        self.position = position
        self.first = first
        self.last = last


class TopicGone(Exception):
    """The topic was deleted, or its name belongs to another one now."""


@dataclass(frozen=True, slots=True)
class Block:
    data: bytes
    batches: list[Located]


@dataclass(slots=True)
class _Asked:
    """A fetch that is on its way."""

    connection: Connection
    version: int
    number: int
    offset: int


class Fetcher:
    """Reads one partition from `start` up to `end`; `blocks` may be iterated once."""

    def __init__(
        self,
        cluster: Cluster,
        partition: TopicPartition,
        start: int,
        end: int,
        settings: FetchSettings,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self._cluster = cluster
        self._partition = partition
        self._topic_id = topic_id
        self._position = start
        self._end = end
        self._settings = settings
        self._limit = settings.block_bytes
        self._nearest: int | None = None
        """The replica that the leader sends a reader with a rack to."""

    def blocks(self) -> Iterator[Block]:
        asked: _Asked | None = None
        try:
            while self._position < self._end:
                asked, data = self._next(asked)
                block = self._take(data)
                asked = self._ask() if self._position < self._end else None
                if block.batches:
                    yield block
        finally:
            if asked is not None:
                # The answer will never be read, and the next one would be mistaken for it.
                asked.connection.close()

    def _next(self, asked: _Asked | None) -> tuple[None, PartitionData]:
        """The next answer that holds records, asking as often as it takes."""
        deadline = time.monotonic() + self._settings.poll_timeout
        pause = self._cluster.settings.retry_backoff
        unknown_since: float | None = None
        why: object = "no record arrived"
        while True:
            try:
                data = self._receive(asked or self._request())
                if data.records:
                    return None, data
                if data.preferred_read_replica >= 0:
                    self._nearest = data.preferred_read_replica
                why = f"the partition ends at {data.high_watermark}"
            except (BrokerUnavailable, KafkaError) as error:
                if isinstance(error, KafkaError) and error.code not in RETRIABLE:
                    raise
                why = error
                if isinstance(error, KafkaError) and error.code in _UNKNOWN:
                    unknown_since = unknown_since or time.monotonic()
                    if time.monotonic() - unknown_since > PATIENCE_WITH_UNKNOWN:
                        raise TopicGone(self._partition.topic) from None
                else:
                    unknown_since = None  # Brokers were away, and come back before they know everything.
                self._nearest = None
                self._cluster.forget(self._partition.topic)
                time.sleep(pause)
                pause = min(pause * 2, self._cluster.settings.retry_backoff_max)
            asked = None
            if time.monotonic() > deadline:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"Cannot fetch record for offset {self._position} of {self._partition} in "
                    f"{self._settings.poll_timeout * 1000:.0f} milliseconds (kafkaConsumer.pollTimeoutMs): {why}",
                )

    def _ask(self) -> _Asked | None:
        """Ask for the next block without waiting; trouble shows when the answer is wanted."""
        try:
            return self._request()
        except (BrokerUnavailable, KafkaError):
            return None

    def _request(self) -> _Asked:
        topic, partition = self._partition
        if self._nearest is None:
            connection = self._cluster.leader(topic, partition)
        else:
            connection = self._cluster.node(self._nearest)
        version = connection.offer.version_of(FetchRequest)
        topic_id = self._topic_id
        if version >= _TOPIC_IDS and topic_id == ZERO_UUID:
            topic_id = self._cluster.topic(topic).id
            if topic_id == ZERO_UUID:
                version = _TOPIC_IDS - 1
        wanted = FetchPartition(partition, fetch_offset=self._position, partition_max_bytes=self._limit)
        request = FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=1,
            max_bytes=self._limit,
            isolation_level=int(self._settings.committed),
            topics=[FetchTopic(topic, topic_id, [wanted])],
            rack_id=self._cluster.settings.rack,
        )
        return _Asked(connection, version, connection.send(request, version), self._position)

    def _receive(self, asked: _Asked) -> PartitionData:
        reply = asked.connection.receive(FetchResponse, asked.version, asked.number)
        code = ErrorCode(reply.error_code)
        if code:
            raise KafkaError(code, f"fetching {self._partition} failed: {code.name}")
        if not reply.responses:
            # A broker whose quota is used up says nothing about any partition, and answers the next request later.
            return PartitionData(self._partition.partition)
        data = reply.responses[0].partitions[0]
        code = ErrorCode(data.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and self._nearest is None:
            self._out_of_range()
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may not have yet, or not have any more, what the leader has: ask the leader.
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if code:
            if lost_leader(code):
                self._cluster.forget(self._partition.topic)
            raise KafkaError(code, f"fetching {self._partition} failed: {code.name}")
        return data

    def _out_of_range(self) -> None:
        partition = self._partition
        first = list_offsets(self._cluster, {partition: EARLIEST})[partition]
        last = list_offsets(self._cluster, {partition: LATEST})[partition]
        raise OffsetsGone(partition, self._position, first, last)

    def _take(self, data: PartitionData) -> Block:
        """The batches of an answer that are for the reader; moves the position behind them all."""
        records = data.records or b""
        aborted = _Aborted(data.aborted_transactions or []) if self._settings.committed else None
        batches: list[Located] = []
        seen = False
        for position, header in iterate_batches(records):
            seen = True
            if header.last_offset < self._position:
                continue
            if header.base_offset >= self._end:
                self._position = self._end
                break
            hidden = aborted is not None and aborted.hides(header.last_offset, header.producer_id)
            self._position = header.next_offset
            if header.is_control:
                marker = read_end_transaction_marker(records[position : position + header.size], header)
                if aborted is not None and marker is not None and not marker.committed:
                    aborted.ended(header.producer_id)
            elif not (hidden and header.is_transactional) and header.records_count:
                batches.append(Located(position, header))
        if not seen:
            # The first batch is larger than what was asked for: ask for more.
            self._limit = min(4 * self._limit, _LARGEST_FETCH)
        return Block(records, batches)


class _Aborted:
    """Which producers' records belong to an aborted transaction, batch after batch."""

    def __init__(self, transactions: list[AbortedTransaction]) -> None:
        self._coming = sorted(transactions, key=lambda entry: entry.first_offset, reverse=True)
        self._open: set[int] = set()

    def hides(self, last_offset: int, producer_id: int) -> bool:
        while self._coming and self._coming[-1].first_offset <= last_offset:
            self._open.add(self._coming.pop().producer_id)
        return producer_id in self._open

    def ended(self, producer_id: int) -> None:
        self._open.discard(producer_id)
