"""Sending to a topic that no broker has told of yet: how long callers wait, in which order, and what they are told."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest

from headrace.client import AsyncProducer, ConfigError, DeliveryError, Producer
from headrace.testing.broker import BrokerThread

NewTopic = Callable[..., str]


def test_max_block_ms_bounds_the_wait_for_a_topic_nobody_tells_of(silent_broker: str) -> None:
    with (
        Producer(silent_broker, max_block_ms=500, delivery_timeout_ms=3_600_000) as producer,
        pytest.raises(
            DeliveryError,
            match=r"a record for t was not sent: no broker answered for topic t within 0\.5 s \(max\.block\.ms\)",
        ),
    ):
        producer.send_and_wait("t", "x")


async def test_max_block_ms_bounds_that_wait_for_asyncio_too(silent_broker: str) -> None:
    async with AsyncProducer(silent_broker, max_block_ms=500, delivery_timeout_ms=3_600_000) as producer:
        with pytest.raises(DeliveryError, match=r"no broker answered for topic t within 0\.5 s"):
            await producer.send_and_wait("t", "x")


async def test_a_topic_that_does_not_exist_is_waited_for_and_told_apart(
    make_broker: Callable[..., BrokerThread],
) -> None:
    broker = make_broker({"auto.create.topics.enable": "false"})
    settings = {"max_block_ms": 5000, "delivery_timeout_ms": 3_600_000}
    async with AsyncProducer(broker.bootstrap, **settings) as producer:
        with Producer(broker.bootstrap, **settings) as sync:
            calls = [producer.send_and_wait("missing", "x") for _ in range(60)]
            in_a_thread = asyncio.to_thread(sync.send_and_wait, "missing", "x")
            failures = await asyncio.gather(in_a_thread, *calls, return_exceptions=True)
    assert len(failures) == 61
    for failure in failures:
        assert isinstance(failure, DeliveryError)
        assert "no broker knew topic missing within 5 s (max.block.ms): " in str(failure)


async def test_a_topic_that_comes_to_exist_is_sent_to_by_all_who_waited(
    make_broker: Callable[..., BrokerThread],
) -> None:
    broker = make_broker({"auto.create.topics.enable": "false"})
    async with AsyncProducer(
        broker.bootstrap, max_block_ms=300_000, delivery_timeout_ms=3_600_000
    ) as producer:
        waiting = [asyncio.create_task(producer.send_and_wait("later", str(number))) for number in range(20)]
        await asyncio.sleep(0)
        await asyncio.to_thread(broker.create_topic, "later")
        assert [sent.offset for sent in await asyncio.gather(*waiting)] == list(range(20))


@pytest.mark.parametrize("partitioner", ["murmur2", "hash_slots"])
async def test_concurrent_callers_keep_their_order_in_a_new_topic(
    bootstrap: str, new_topic: NewTopic, partitioner: str
) -> None:
    for _ in range(5):
        topic = new_topic(1)
        async with AsyncProducer(bootstrap, partitioner=partitioner) as producer:
            sent = await asyncio.gather(*(producer.send_and_wait(topic, str(n)) for n in range(60)))
        assert [each.offset for each in sent] == list(range(60))


def test_callers_that_wait_for_a_topic_hold_up_neither_threads_nor_the_end(silent_broker: str) -> None:
    program = """
import asyncio, sys
from headrace.client import AsyncProducer
async def main():
    settings = {"max_block_ms": 3_600_000, "delivery_timeout_ms": 7_200_000}
    async with AsyncProducer(sys.argv[1], **settings) as producer:
        waiting = [asyncio.create_task(producer.send_and_wait("t", "x")) for _ in range(100)]
        await asyncio.sleep(0)
        print(await asyncio.to_thread(lambda: "a thread was free"))
        for task in waiting:
            task.cancel()
asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, silent_broker], capture_output=True, text=True, timeout=120
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("a thread was free\n", "", 0)


async def test_a_closed_producer_says_so_and_asks_for_no_topic(silent_broker: str) -> None:
    settings = {"max_block_ms": 3_600_000, "delivery_timeout_ms": 7_200_000}
    sync, aio = Producer(silent_broker, **settings), AsyncProducer(silent_broker, **settings)
    sync.close()
    await aio.close()
    with pytest.raises(ConfigError, match="the producer is closed"):
        sync.send_and_wait("t", "x")
    with pytest.raises(ConfigError, match="the producer is closed"):
        await aio.send_and_wait("t", "x")


@pytest.mark.parametrize("name", ["delivery_timeout_ms", "message_timeout_ms"])
def test_a_delivery_timeout_shorter_than_max_block_ms_applies_to_an_unknown_topic(
    silent_broker: str, name: str
) -> None:
    with (
        Producer(silent_broker, max_block_ms=3_600_000, linger_ms=0, **{name: 300}) as producer,
        pytest.raises(DeliveryError, match="was not acknowledged"),
    ):
        producer.send_and_wait("t", "x")
