"""Transactional producers: records to several partitions at once, committed, aborted or left open; instances take over from each other.

`copies` read one partition and write what they read to another, with the offsets in the same transaction: each record once.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.wire.errors import ErrorCode
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.records import BatchBuilder
from tests.simulation.client import GROUP, TRANSACTION, Away, Client, Refused, check
from tests.simulation.groups import fetch_offsets
from tests.simulation.history import History, Place, Transaction
from tests.simulation.readers import records_of
from tests.simulation.writers import produce

T = TypeVar("T")

TIMEOUT_MS = 8000
TRIES = 40
_FENCED = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
}


class Over(Exception):
    """This instance, or this transaction, can go no further."""


class Instance:
    """One life of a transactional producer."""

    def __init__(self, client: Client, transactional_id: str, name: str) -> None:
        self.client = client
        self.id = transactional_id
        self.name = name
        self.producer = (-1, -1)
        self.sequences: dict[Place, int] = {}
        self.added: set[Place] = set()
        self.newer_protocol = client.random.random() < 0.5
        """KIP-890: partitions are added by writing to them, and every transaction has an epoch of its own."""

    async def retry(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for _ in range(TRIES):
            try:
                return await attempt()
            except Away:
                pass
            except Refused as error:
                if error.code in _FENCED:
                    raise Over(str(error)) from None
                if error.code in (
                    ErrorCode.NOT_COORDINATOR,
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ):
                    self.client.forget_coordinator(TRANSACTION, self.id)
            await self.client.sleep(0.15)
        raise Over("it was tried long enough")

    async def begin(self) -> None:
        async def attempt() -> None:
            reply = await self.client.ask_coordinator(
                TRANSACTION,
                self.id,
                InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=TIMEOUT_MS),
                4,
            )
            check(reply.error_code)
            self._use(reply.producer_id, reply.producer_epoch)

        await self.retry(attempt)

    def _use(self, producer_id: int, epoch: int) -> None:
        self.producer = producer_id, epoch
        self.sequences = {}

    async def add(self, place: Place) -> None:
        if self.newer_protocol or place in self.added:
            return

        async def attempt() -> None:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=self.producer[0],
                v3_and_below_producer_epoch=self.producer[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(place[0], [place[1]])],
            )
            reply = await self.client.ask_coordinator(TRANSACTION, self.id, request, 3)
            check(reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

        await self.retry(attempt)
        self.added.add(place)

    async def write(self, place: Place, values: list[bytes]) -> int:
        await self.add(place)
        sequence = self.sequences.get(place, 0)
        builder = BatchBuilder(
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        now = self.client.process.clock.now_ms()
        for value in values:
            builder.append(now, None, value)
        batch = builder.build()
        version = 12 if self.newer_protocol else 9
        offset = await self.retry(lambda: produce(self.client, place, batch, self.id, version))
        self.sequences[place] = sequence + len(values)
        return offset

    async def end(self, commit: bool) -> None:
        async def attempt() -> None:
            request = EndTxnRequest(self.id, *self.producer, commit)
            version = 5 if self.newer_protocol else 3
            reply = await self.client.ask_coordinator(TRANSACTION, self.id, request, version)
            check(reply.error_code)
            if self.newer_protocol:
                self._use(reply.producer_id, reply.producer_epoch)

        await self.retry(attempt)
        self.added = set()

    async def commit_offset(self, group: str, place: Place, offset: int) -> None:
        async def attempt() -> None:
            if not self.newer_protocol:
                added = await self.client.ask_coordinator(
                    TRANSACTION, self.id, AddOffsetsToTxnRequest(self.id, *self.producer, group), 3
                )
                check(added.error_code)
            partition = TxnOffsetCommitRequestPartition(place[1], offset)
            request = TxnOffsetCommitRequest(
                self.id, group, *self.producer, topics=[TxnOffsetCommitRequestTopic(place[0], [partition])]
            )
            try:
                version = 5 if self.newer_protocol else 3
                reply = await self.client.ask_coordinator(GROUP, group, request, version)
                check(reply.topics[0].partitions[0].error_code)
            except Refused:
                self.client.forget_coordinator(GROUP, group)
                raise

        await self.retry(attempt)


class Transactor:
    """Writes to two or three of its partitions in each transaction."""

    def __init__(self, client: Client, history: History, transactional_id: str, places: list[Place]) -> None:
        self._client = client
        self._history = history
        self._id = transactional_id
        self._places = places
        self._lives = itertools.count()
        self._numbers = itertools.count()

    async def run(self) -> None:
        client = self._client
        while not self._history.finishing:
            instance = Instance(client, self._id, f"{client.name}.{next(self._lives)}")
            try:
                await instance.begin()
                for _ in range(client.random.randrange(3, 40)):
                    if self._history.finishing:
                        return
                    await self._one(instance)
                    await client.sleep(0.25)
            except Over:
                pass
            await client.sleep(client.random.choice((0.2, 0.5, 2.0)))

    async def _one(self, instance: Instance) -> None:
        client, world = self._client, self._client.world
        number = next(self._numbers)
        transaction = Transaction(self._id, number, world.now)
        self._history.transactions.append(transaction)
        committing = False
        try:
            for place in client.random.sample(self._places, client.random.choice((2, 2, 3))):
                values = [
                    b"T %s %d %d" % (instance.name.encode(), number, each)
                    for each in range(client.random.choice((1, 1, 2)))
                ]
                self._history.sent.update(values)
                transaction.written[place] += [(-1, value) for value in values]
                offset = await instance.write(place, values)
                self._history.writes += 1
                if offset >= 0:
                    transaction.written[place][-len(values) :] = [
                        (offset + each, value) for each, value in enumerate(values)
                    ]
            if client.random.random() < 0.05:
                transaction.outcome = "aborted"
                raise Over("it dies with its transaction open")
            committing = client.random.random() < 0.8
            await instance.end(committing)
            transaction.outcome = "committed" if committing else "aborted"
            self._history.last_success[client.name] = world.now
        except Over:
            transaction.outcome = "unknown" if committing else "aborted"
            raise
        finally:
            transaction.ended = world.now


class Copier:
    """Reads one partition, writes it to another, exactly once; two instances of it fight for the work."""

    def __init__(self, client: Client, history: History, name: str, source: Place, target: Place) -> None:
        self._client = client
        self._history = history
        self._id = name
        self._source = source
        self._target = target

    async def run(self) -> None:
        client = self._client
        while not self._history.finishing:
            instance = Instance(client, self._id, client.name)
            try:
                await instance.begin()
                position = await self._position(instance)
                for _ in range(client.random.randrange(3, 25)):
                    if self._history.finishing:
                        return
                    position = await self._copy(instance, position)
                    await client.sleep(0.3)
            except Over:
                pass
            await client.sleep(client.random.choice((0.2, 1.0, 3.0)))

    async def _position(self, instance: Instance) -> int:
        async def attempt() -> int:
            found = await fetch_offsets(self._client, self._id, [self._source])
            return max(found[self._source], 0)

        return await instance.retry(attempt)

    async def _copy(self, instance: Instance, position: int) -> int:
        client = self._client

        async def attempt() -> tuple[list[tuple[int, bytes | None, bytes | None]], int]:
            topic, index = self._source
            asked = FetchPartition(partition=index, fetch_offset=position, partition_max_bytes=2000)
            request = FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=2000,
                isolation_level=1,
                topics=[FetchTopic(topic=topic, partitions=[asked])],
            )
            reply = await client.call(await client.leader(*self._source), request, 11)
            partition = reply.responses[0].partitions[0]
            if partition.error_code:
                client.forget(*self._source)
                raise Refused(partition.error_code)
            return records_of(partition, position, True)

        found, following = await instance.retry(attempt)
        if following == position:
            return position
        values = [b"C %d " % offset + (value or b"") for offset, _, value in found]
        self._history.sent.update(values)
        if values:
            await instance.write(self._target, values)
            self._history.writes += 1
        await instance.commit_offset(self._id, self._source, following)
        await instance.end(True)
        self._history.last_success[client.name] = client.world.now
        return following
