"""Idempotent producers: to each partition one numbered sequence of batches, each sent until it is acknowledged.

Up to `depth` batches of a partition are under way at once, on one connection, as librdkafka and Java do; when one fails they are all
sent again, in order, with their sequence numbers.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

from headrace.link.aio import AsyncConnection
from headrace.link.errors import BrokerUnavailable
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.records import BatchBuilder
from tests.simulation.client import TIMEOUT, Away, Client, Refused, check
from tests.simulation.history import History, Place

Waiting = tuple[int, list[tuple[bytes | None, bytes]]]
"""A batch: its sequence and its records."""
PADDING = b"." * 20
PATIENCE = 0.15


def produce_request(
    place: Place, batch: bytes | bytearray, transactional_id: str | None = None
) -> ProduceRequest:
    data = PartitionProduceData(index=place[1], records=bytes(batch))
    return ProduceRequest(
        transactional_id, -1, 4000, [TopicProduceData(name=place[0], partition_data=[data])]
    )


async def produce(
    client: Client,
    place: Place,
    batch: bytes | bytearray,
    transactional_id: str | None = None,
    version: int = 9,
) -> int:
    """The base offset; Refused, or Away."""
    address = await client.leader(*place)
    try:
        reply = await client.call(address, produce_request(place, batch, transactional_id), version)
    except Away:
        client.forget(*place)
        raise
    partition = reply.responses[0].partition_responses[0]
    if partition.error_code:
        client.forget(*place)
        raise Refused(partition.error_code)
    return partition.base_offset


async def init_producer(client: Client) -> tuple[int, int]:
    while True:
        try:
            address = client.random.choice(client._addresses)
            reply = await client.call(address, InitProducerIdRequest(transactional_id=None), 4)
            check(reply.error_code)
        except (Away, Refused):
            await client.sleep(PATIENCE)
            continue
        return reply.producer_id, reply.producer_epoch


class Lane:
    """One producer's way to one partition."""

    def __init__(
        self, client: Client, history: History, place: Place, pause: float, depth: int, keys: int = 0
    ) -> None:
        self.name = f"{client.name}>{place[0]}-{place[1]}"
        self._client = client
        self._history = history
        self._place = place
        self._pause = pause
        self._depth = depth
        self._keys = keys
        self._numbers = itertools.count()
        self._sequence = 0
        self._begun = False
        """The last batches were all acknowledged, so that several may be under way."""
        self._waiting: list[Waiting] = []
        """Batches not acknowledged yet: their sequences and records."""

    async def run(self, producer: tuple[int, int]) -> None:
        client = self._client
        await client.sleep(self._pause * client.random.random())
        while not self._history.finishing:
            while len(self._waiting) < 1 or (
                len(self._waiting) < self._depth and client.random.random() < 0.6
            ):
                self._add()
            await self._send(producer)
            await client.sleep(self._pause)

    def _add(self) -> None:
        records: list[tuple[bytes | None, bytes]] = []
        for _ in range(self._client.random.choice((1, 1, 1, 2, 3))):
            value = b"%s %d %s" % (self.name.encode(), next(self._numbers), PADDING)
            key = b"key-%d" % self._client.random.randrange(self._keys) if self._keys else None
            records.append((key, value))
            self._history.sent.add(value)
        self._waiting.append((self._sequence, records))
        self._sequence += len(records)

    async def _send(self, producer: tuple[int, int]) -> None:
        """Until everything that waits is acknowledged."""
        several = self._begun
        while self._waiting:
            sending = list(self._waiting if several else self._waiting[:1])
            outcomes = await self._try(producer, sending)
            several = self._begun = all(isinstance(outcome, int) for outcome in outcomes)
            told = ", ".join(f"{each[0]} {outcome}" for each, outcome in zip(sending, outcomes, strict=True))
            self._client.world.trace(f"{self.name}: {told}")
            for (sequence, records), outcome in zip(sending, outcomes, strict=True):
                if not isinstance(outcome, int):
                    self._refused(sequence, outcome)
                elif self._waiting[0][0] == sequence:
                    self._acknowledged(records, outcome)
                    self._waiting.pop(0)
                else:
                    self._client.world.trouble(
                        f"{self.name}: the batch from {sequence} was taken before the one from {self._waiting[0][0]}"
                    )
            if not several:
                await self._client.sleep(PATIENCE)

    async def _try(self, producer: tuple[int, int], sending: list[Waiting]) -> Sequence[int | Away | Refused]:
        """Send batches in their order on one connection."""
        client = self._client
        try:
            address = await client.leader(*self._place)
            connection = await client.connection(address)
        except (Away, Refused) as error:
            client.forget(*self._place)
            return [error] * len(sending)
        return await asyncio.gather(*(self._produce(connection, producer, *each) for each in sending))

    async def _produce(
        self,
        connection: AsyncConnection,
        producer: tuple[int, int],
        sequence: int,
        records: list[tuple[bytes | None, bytes]],
    ) -> int | Away | Refused:
        builder = BatchBuilder(producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence)
        now = self._client.process.clock.now_ms()
        for key, value in records:
            builder.append(now, key, value)
        try:
            reply = await connection.call(produce_request(self._place, builder.build()), 9, TIMEOUT)
        except (BrokerUnavailable, ConnectionError) as error:
            self._client.forget(*self._place)
            return Away(str(error))
        partition = reply.responses[0].partition_responses[0]
        if partition.error_code:
            self._client.forget(*self._place)
            return Refused(partition.error_code)
        return partition.base_offset

    def _acknowledged(self, records: list[tuple[bytes | None, bytes]], offset: int) -> None:
        history, world = self._history, self._client.world
        history.writes += 1
        history.last_success[self.name] = world.now
        if offset < 0:
            return  # A repetition that the broker knows only as older than what it remembers.
        for number, (key, value) in enumerate(records):
            told = history.acknowledged[self._place].setdefault(offset + number, value)
            if told != value:
                world.trouble(
                    f"{self._place} offset {offset + number} was acknowledged for {told!r} and {value!r}"
                )
            if key is not None:
                known = history.keyed[self._place].get(key, (-1, b""))
                history.keyed[self._place][key] = max(known, (offset + number, value))

    def _refused(self, sequence: int, refused: Away | Refused) -> None:
        """A producer with one id and all its records in order is refused for passing reasons only."""
        if isinstance(refused, Away):
            return
        first = self._waiting[0][0] == sequence if self._waiting else True
        if refused.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not first:
            return
        if refused.code in FATAL:
            self._client.world.trouble(f"{self.name}: batch {sequence} was refused: {refused}")


FATAL = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.MESSAGE_TOO_LARGE,
}
