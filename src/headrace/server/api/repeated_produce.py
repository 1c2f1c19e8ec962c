"""The produce requests that a connection remembers, to serve the next ones like them without decoding or encoding.

A producer sends to the same partitions again and again, most in a request per partition: the next request to a partition
differs only in correlation id and records. What is remembered is a reading of the bytes it begins with, nothing of the
cluster's state: the partition is looked up, and the client's permission and quotas are checked, for every request. What
needs more than that (a metered client, a transaction that has not written to the partition before) takes the plain path.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from headrace.server.api.context import Context
from headrace.server.api.engines import Engines
from headrace.server.api.produce_answers import Wait, answer, refusal
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.net.connection import Connection
from headrace.server.replica.partition import Partition
from headrace.server.security.operations import Operation
from headrace.wire.batch import TRANSACTIONAL, parse_header
from headrace.wire.errors import KafkaError
from headrace.wire.produce import TOPIC_IDS, PartitionReply, ProduceRequest
from headrace.wire.repeated_produce import ReplyForm, Start, read_records

API_KEY = 0
WRITE = Operation.WRITE
"""Python 3.11 takes its time to look up a member of an enum."""

MOST_REMEMBERED = 128
"""Requests that a connection remembers: they cost memory for as long as the client is connected."""

LONGEST_START = 1024
"""Bytes before the records of a request that is remembered."""

ATTRIBUTES = 22
"""Where a batch has the lower byte of its attributes."""


class _Remembered(NamedTuple):
    """What the bytes at the start of a request say."""

    start: bytes
    """API and version."""
    version: int
    client_id: str | None
    in_transaction: bool
    """It has a transactional id."""
    acks: int
    timeout_ms: int
    topic: bytes
    by_id: bool
    partition: int
    reply: ReplyForm
    permitted: Container[bytes] | None
    """The topics that the client is known to be allowed to write, emptied when an ACL changes; None where nobody has to be asked."""


class RepeatedProduces:
    """Those of one connection."""

    __slots__ = ("_by_bytes", "_engines", "_starts")

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._starts: list[Start] = []
        """One for each length that occurs: topics have names of different lengths."""
        self._by_bytes: dict[bytes, _Remembered | None] = {}

    def serve(self, connection: Connection, frame: memoryview) -> bool:
        """Serve a request that begins like one before; False for any other, and when the plain path has to look closer."""
        for start in self._starts:
            size = start.size
            if len(frame) <= size:
                continue
            version, correlation_id, begins = start.read(frame)
            known = self._by_bytes.get(begins)
            if known is not None and known.start == version:
                records = read_records(frame, size, known.version)
                return records is not None and self._serve(connection, known, correlation_id, records)
        return False

    def _serve(
        self, connection: Connection, known: _Remembered, correlation_id: int, records: memoryview
    ) -> bool:
        engines, acks, permitted = self._engines, known.acks, known.permitted
        if permitted is not None and known.topic not in permitted:
            return False
        if engines.quotas.in_force and not _unlimited(engines, connection, known):
            return False
        try:
            partition = engines.replicas.find(known.topic, known.partition, known.by_id)
            if known.in_transaction and not _has_written(partition, records):
                return False
            if permitted is not None and records[ATTRIBUTES] & TRANSACTIONAL:
                return False  # These need permission for their transactional id.
        except (KafkaError, IndexError):
            return False  # The plain path meets the same error, and says so to the client.
        try:
            appended = partition.append(records, acks=acks)
        except KafkaError as error:
            context = _context(engines, connection, known, correlation_id)
            refused = refusal(context, known.topic, known.partition, known.by_id, error)
            answer(context, [(known.topic, [refused])], [], acks, known.timeout_ms)
            return True
        if partition.must_wait(appended.last_offset, acks):
            written = PartitionReply(
                known.partition, 0, appended.first_offset, appended.log_append_time, appended.log_start_offset
            )
            answers = [written]
            wait = Wait(partition, appended.last_offset, answers, 0)
            context = _context(engines, connection, known, correlation_id)
            answer(context, [(known.topic, answers)], [wait], acks, known.timeout_ms)
            return True
        if connection.served_all:
            # Wake waiting readers before replying to the writer.
            engines.turn.run_now()
        if acks:
            connection.replies.send(
                known.reply.reply(
                    correlation_id,
                    appended.first_offset,
                    appended.log_append_time,
                    appended.log_start_offset,
                )
            )
        return True

    def remember(self, context: Context, request: ProduceRequest, frame: memoryview) -> None:
        """Remember how a request to one partition begins; when it has come twice, also what that says."""
        size, by_bytes = request.length_at, self._by_bytes
        if size > LONGEST_START:
            return
        begins = bytes(frame[8:size])
        if begins not in by_bytes:
            if len(by_bytes) >= MOST_REMEMBERED:
                by_bytes.clear()
                self._starts.clear()
            by_bytes[begins] = None
            return
        known = by_bytes[begins]
        if known is None or (
            self._engines.guarded and known.permitted is not _permitted(context, known.by_id)
        ):
            by_bytes[begins] = self._read(context, request, frame)
            if size not in [start.size for start in self._starts]:
                self._starts.append(Start(size))

    def _read(self, context: Context, request: ProduceRequest, frame: memoryview) -> _Remembered | None:
        topic, partitions = request.topics[0]
        by_id, partition = context.version >= TOPIC_IDS, partitions[0].partition
        permitted = _permitted(context, by_id)
        if self._engines.guarded and (permitted is None or request.transactional_id is not None):
            return None  # Somebody has to be asked every time.
        name = self._engines.replicas.name_of(topic, by_id)
        if name is None or name in INTERNAL_TOPICS or request.acks not in (-1, 0, 1):
            return None
        return _Remembered(
            bytes(frame[:4]),
            context.version,
            context.client_id,
            request.transactional_id is not None,
            request.acks,
            request.timeout_ms,
            topic,
            by_id,
            partition,
            ReplyForm(topic, partition, context.version),
            permitted,
        )


def remember(context: Context, request: ProduceRequest, frame: memoryview) -> None:
    """Have the connection remember a request that was just decoded and served."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1 or context.meter is not None:
        return
    produces = context.connection.repeated.get(API_KEY)
    if produces is None:
        produces = context.connection.repeated[API_KEY] = RepeatedProduces(context.engines)
    assert isinstance(produces, RepeatedProduces)
    produces.remember(context, request, frame)


def _context(engines: Engines, connection: Connection, known: _Remembered, correlation_id: int) -> Context:
    return Context(engines, connection, known.version, correlation_id, known.client_id, api="produce")


def _permitted(context: Context, by_id: bool) -> Container[bytes] | None:
    permission = context.connection.permissions.get(WRITE << 1 | by_id)
    return None if permission is None else permission[0]


def _unlimited(engines: Engines, connection: Connection, known: _Remembered) -> bool:
    """Whether the client is known to have no quota."""
    allowance = connection.allowance
    return (
        allowance is not None
        and allowance.unlimited
        and allowance.generation == engines.quotas.generation
        and allowance.client_id == (known.client_id or "")
    )


def _has_written(partition: Partition, records: memoryview) -> bool:
    """Whether these records belong to a transaction that has written to the partition, so that nobody has to verify it."""
    header = parse_header(records)
    return header.is_transactional and partition.log.has_ongoing_transaction(
        header.producer_id, header.producer_epoch
    )
