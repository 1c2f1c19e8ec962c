"""Tasks cancelled again and again, at any await: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import pytest

from headrace.client import AsyncConsumer, AsyncProducer, Producer, Record

NewTopic = Callable[..., str]
ReadAll = Callable[..., list[Record]]
COUNT = 120
SETTINGS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 6000,
}


def fill(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        for number in range(COUNT):
            producer.send_and_forget(topic, str(number))


async def cancelled_again_and_again(
    work: Callable[[], Coroutine[Any, Any, None]], finished: Callable[[], bool], chance: random.Random
) -> None:
    deadline = asyncio.get_running_loop().time() + 60
    while not finished():
        assert asyncio.get_running_loop().time() < deadline, "it did not come to an end"
        task = asyncio.ensure_future(work())
        if chance.random() < 0.5:
            for _ in range(chance.randrange(30)):
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(chance.random() * 0.05)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
async def test_a_reader_sees_every_record_once(
    bootstrap: str,
    new_topic: NewTopic,
    group: str,
    delivery: Literal["at_least_once", "at_most_once"],
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic)
    chance, seen = random.Random(3), []
    async with AsyncConsumer(bootstrap, group_id=group, delivery=delivery, **SETTINGS) as consumer:
        await consumer.subscribe(topic)

        async def read() -> None:
            while len(seen) < COUNT:
                records = await consumer.poll(0.2, max_records=3)
                seen.extend(record.offset for record in records)
                if records and chance.random() < 0.2:
                    await consumer.pause(records[0].topic_partition)
                await consumer.resume(*consumer.paused())

        await cancelled_again_and_again(read, lambda: len(seen) >= COUNT, chance)
    assert seen == list(range(COUNT))


async def test_a_chain_of_transactions_copies_every_record_once(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    incoming, outgoing = new_topic(), new_topic()
    await asyncio.to_thread(fill, bootstrap, incoming)
    last = -1
    async with (
        AsyncConsumer(bootstrap, group_id=group, delivery="exactly_once", **SETTINGS) as consumer,
        AsyncProducer(bootstrap, transactional_id=f"chain-{uuid.uuid4().hex}", linger_ms=0) as producer,
    ):
        await consumer.subscribe(incoming)

        async def copy() -> None:
            nonlocal last
            while last < COUNT - 1:
                records = await consumer.poll(0.2, max_records=10)
                async with producer.transaction(consumer):
                    for record in records:
                        await producer.send(outgoing, record.value)
                last = max([last, *(record.offset for record in records)])

        # What a cancelled block had committed is not in ``last``; the end of the topic tells then.
        await cancelled_again_and_again(copy, lambda: last >= COUNT - 1 or idle(consumer), random.Random(5))
    copied = await asyncio.to_thread(read_all, outgoing)
    assert [int(record.value or b"") for record in copied] == list(range(COUNT))


def idle(consumer: AsyncConsumer) -> bool:
    """Whether everything was read and committed."""
    partitions = consumer.assignment()
    if not partitions or consumer.sync.uncommitted():
        return False
    return all(consumer.sync.position(partition) == COUNT for partition in partitions) and all(
        offset == COUNT for offset in consumer.sync.committed().values()
    )
