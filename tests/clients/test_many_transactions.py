"""Many transactional producers and many consumers that wait for a few milliseconds only: no reply is taken for another."""

import asyncio
import random
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.conn import AIOKafkaConnection, CloseReason

SECONDS = 40
PARTITIONS = 3


async def produce(bootstrap, topic, index, until):
    chance, sent = random.Random(index), 0
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"many-{index}", linger_ms=0
    ) as producer:
        while time.monotonic() < until:
            commits = chance.random() < 0.8
            await producer.begin_transaction()
            for number in range(chance.randint(1, 5)):
                value = b"%d" % commits + b"x" * chance.choice((10, 3000))
                await producer.send_and_wait(topic, value, partition=number % PARTITIONS)
                sent += commits
            await (producer.commit_transaction() if commits else producer.abort_transaction())
    return sent


async def consume(bootstrap, topic, index, produced):
    """How many records there were by the time all producers were done and their last ones were read."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        fetch_max_wait_ms=8 + index,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    seen = 0
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
        await consumer.seek_to_beginning()
        while not produced.done() or seen < produced.result():
            for records in (await consumer.getmany(timeout_ms=500)).values():
                assert all(record.value.startswith(b"1") for record in records), (
                    "a record of an aborted transaction"
                )
                seen += len(records)
    finally:
        await consumer.stop()
    return seen


@pytest.mark.long
async def test_no_reply_is_taken_for_another(make_broker, monkeypatch):
    broken = []
    close = AIOKafkaConnection.close

    def noted(self, reason=None, exc=None):
        if reason in (CloseReason.OUT_OF_SYNC, CloseReason.CONNECTION_BROKEN):
            broken.append((reason, exc))
        return close(self, reason=reason, exc=exc)

    monkeypatch.setattr(AIOKafkaConnection, "close", noted)
    broker = make_broker()
    topic = broker.create_topic(partitions=PARTITIONS)
    until = time.monotonic() + SECONDS
    produced = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(SECONDS + 120), asyncio.TaskGroup() as group:
        producers = [group.create_task(produce(broker.bootstrap, topic, each, until)) for each in range(6)]
        consumers = [
            group.create_task(consume(broker.bootstrap, topic, each, produced)) for each in range(12)
        ]
        produced.set_result(sum(await asyncio.gather(*producers)))
    assert broken == []
    assert {task.result() for task in consumers} == {produced.result()}
