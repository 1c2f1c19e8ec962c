"""Transactions as a with block: records and consumed offsets together, or neither."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.client import (
    Admin,
    AsyncConsumer,
    AsyncProducer,
    BrokerError,
    ConfigError,
    Consumer,
    FencedError,
    Producer,
    Record,
    TopicPartition,
    TransactionAborted,
)
from headrace.client.scan import scan
from headrace.testing.broker import BrokerThread

HERE = Path(__file__).parent
NewTopic = Callable[..., str]
ReadAll = Callable[..., list[Record]]


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def producer(bootstrap: str) -> object:
    with Producer(
        bootstrap, delivery="exactly_once", transactional_id=unique("txn"), linger_ms=0
    ) as producer:
        yield producer


def source(bootstrap: str, topic: str, count: int = 3) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send_and_forget(topic, str(number), partition=0)


def reader(bootstrap: str, topic: str, group: str) -> Consumer:
    consumer = Consumer(
        bootstrap,
        group_id=group,
        delivery="exactly_once",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        session_timeout_ms=6000,
    )
    consumer.subscribe(topic)
    return consumer


def poll_until(consumer: Consumer, count: int) -> list[Record]:
    records: list[Record] = []
    while len(records) < count:
        records += consumer.poll(0.5)
    return records


def test_a_block_commits_all_its_records_at_once(
    producer: Producer, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    with producer.transaction():
        producer.send_and_wait(topic, "a")
        assert [record.value for record in read_all(topic)] == []
        producer.send(topic, "b")
    assert [record.value for record in read_all(topic)] == [b"a", b"b"]


def test_an_exception_rolls_everything_back_and_goes_on_up(
    producer: Producer, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()

    def fail() -> None:
        with producer.transaction():
            producer.send_and_wait(topic, "never")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with producer.transaction():
        producer.send(topic, "seen")
    assert [record.value for record in read_all(topic)] == [b"seen"]
    assert b"never" in [record.value for record in read_all(topic, "read_uncommitted")]


def test_consumed_offsets_are_part_of_the_transaction(
    bootstrap: str,
    admin: Admin,
    producer: Producer,
    new_topic: NewTopic,
    read_all: ReadAll,
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    incoming, outgoing, group = new_topic(), new_topic(), unique("group")
    source(bootstrap, incoming)
    with reader(bootstrap, incoming, group) as consumer:
        records = poll_until(consumer, 3)
        with producer.transaction(consumer):
            for record in records:
                producer.send(outgoing, record.value)
        eventually(lambda: admin.group_offsets(group) == {TopicPartition(incoming, 0): 3})
    assert [record.value for record in read_all(outgoing)] == [b"0", b"1", b"2"]


def test_after_an_abort_the_same_records_come_again(
    bootstrap: str, admin: Admin, producer: Producer, new_topic: NewTopic, read_all: ReadAll
) -> None:
    incoming, outgoing, group = new_topic(), new_topic(), unique("group")
    source(bootstrap, incoming)
    with reader(bootstrap, incoming, group) as consumer:
        first = poll_until(consumer, 3)

        def fail() -> None:
            with producer.transaction(consumer):
                producer.send(outgoing, first[0].value)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert admin.group_offsets(group) == {}
        again = poll_until(consumer, 3)
        assert [record.offset for record in again] == [0, 1, 2]
        with producer.transaction(consumer):
            for record in again:
                producer.send(outgoing, record.value)
    assert [record.value for record in read_all(outgoing)] == [b"0", b"1", b"2"]
    assert admin.group_offsets(group) == {TopicPartition(incoming, 0): 3}


def test_a_newer_producer_with_the_same_id_fences_the_older_one(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic, name = new_topic(), unique("txn")
    with (
        Producer(bootstrap, transactional_id=name) as older,
        Producer(bootstrap, transactional_id=name) as newer,
    ):
        with older.transaction():
            older.send(topic, "before")

        def overtaken() -> None:
            with older.transaction():
                older.send_and_wait(topic, "zombie")
                with newer.transaction():
                    newer.send(topic, "new")

        with pytest.raises(FencedError, match=f'newer producer with the transactional.id "{name}"'):
            overtaken()
    assert [record.value for record in read_all(topic)] == [b"before", b"new"]


def test_partitions_that_go_away_in_the_middle_abort_the_transaction(
    bootstrap: str, producer: Producer, new_topic: NewTopic, read_all: ReadAll
) -> None:
    incoming, outgoing, group = new_topic(2), new_topic(), unique("group")
    source(bootstrap, incoming)
    with Producer(bootstrap) as plain:
        plain.send_and_wait(incoming, "other", partition=1)
    with reader(bootstrap, incoming, group) as first:
        records = poll_until(first, 4)

        def rebalanced() -> None:
            with producer.transaction(first):
                for record in records:
                    producer.send(outgoing, record.value)
                with reader(bootstrap, incoming, group) as second:
                    while not second.assignment():
                        first.poll(0.1)
                        second.poll(0.1)

        with pytest.raises(TransactionAborted, match="went to another member"):
            rebalanced()
    assert read_all(outgoing) == []


def test_a_transactional_producer_sends_only_inside_a_transaction(
    producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with producer.transaction(), pytest.raises(ConfigError, match="already has a transaction open"):
        producer.transaction()
    with pytest.raises(ConfigError, match="only inside a transaction"):
        producer.send(topic, "outside")


def test_a_consumer_that_commits_by_itself_is_refused(bootstrap: str, producer: Producer) -> None:
    with (
        Consumer(bootstrap, group_id="any") as consumer,
        pytest.raises(ConfigError, match="delivery='exactly_once'"),
    ):
        producer.transaction(consumer)


async def test_transactions_work_the_same_from_asyncio(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll
) -> None:
    incoming, outgoing, group = new_topic(), new_topic(), unique("group")
    source(bootstrap, incoming, 5)
    async with (
        AsyncProducer(bootstrap, transactional_id=unique("txn")) as producer,
        AsyncConsumer(
            bootstrap, group_id=group, delivery="exactly_once", auto_offset_reset="earliest"
        ) as consumer,
    ):
        await consumer.subscribe(incoming)
        failed = False
        async for record in consumer:
            try:
                async with producer.transaction(consumer):
                    await producer.send(outgoing, record.value)
                    if record.offset == 2 and not failed:
                        failed = True
                        raise ZeroDivisionError
            except ZeroDivisionError:
                continue
            if record.offset == 4:
                break
    assert [record.value for record in read_all(outgoing)] == [b"0", b"1", b"2", b"3", b"4"]
    assert admin.group_offsets(group) == {TopicPartition(incoming, 0): 5}


async def test_a_block_cancelled_while_it_begins_leaves_nothing_open(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    async with AsyncProducer(bootstrap, transactional_id=unique("txn")) as producer:
        begun, go_on = threading.Event(), threading.Event()
        begin = producer._transaction.begin

        def slowly() -> None:
            begun.set()
            go_on.wait(60)
            begin()

        async def block() -> None:
            async with producer.transaction():
                await producer.send(topic, "never")

        with monkeypatch.context() as patched:
            patched.setattr(producer._transaction, "begin", slowly)
            task = asyncio.create_task(block())
            await asyncio.to_thread(begun.wait, 60)
            task.cancel()
            await asyncio.sleep(0)
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        async with producer.transaction():
            await producer.send(topic, "once")
    assert [record.value for record in read_all(topic)] == [b"once"]


def test_a_chain_killed_again_and_again_copies_every_record_exactly_once(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    incoming, outgoing, count = new_topic(), new_topic(), 1500
    source(bootstrap, incoming, count)
    program = [sys.executable, HERE / "chain.py", bootstrap, incoming, outgoing, group, str(count - 1)]
    chance = random.Random(8)
    for _ in range(6):
        child = subprocess.Popen(program, stdout=subprocess.PIPE)
        assert child.stdout is not None
        lines = chance.randint(1, 25)
        for _, line in zip(range(lines), child.stdout, strict=False):
            assert line
        time.sleep(chance.random() * 0.01)
        child.kill()
        child.wait()
    assert subprocess.run(program, check=False, timeout=60, stdout=subprocess.DEVNULL).returncode == 0
    assert [int(record.value or b"") for record in read_all(outgoing)] == list(range(count))
    assert admin.group_offsets(group) == {TopicPartition(incoming, 0): count}


def copy_all(bootstrap: str, incoming: str, outgoing: str, consumer: Consumer, name: str, count: int) -> None:
    """Copy up to the last record, with a new producer whenever one cannot go on."""
    with Producer(bootstrap, transactional_id=name, linger_ms=0) as producer:
        last = -1
        while last < count - 1:
            records = consumer.poll(0.5)
            try:
                with producer.transaction(consumer):
                    for record in records:
                        producer.send(outgoing, record.value)
            except TransactionAborted:
                continue
            last = max([last, *(record.offset for record in records)])


@pytest.mark.parametrize("lost", ["the request", "the answer"])
def test_a_commit_nobody_has_heard_of_again_neither_skips_nor_doubles(
    make_broker: Callable[..., BrokerThread], lost: str
) -> None:
    broker = make_broker({"group.initial.rebalance.delay.ms": "0"})
    incoming, outgoing = broker.create_topic(), broker.create_topic()
    source(broker.bootstrap, incoming, 6)
    with reader(broker.bootstrap, incoming, "copying") as consumer:
        records = consumer.poll(30, max_records=3)
        with Producer(
            broker.bootstrap, transactional_id="copying", linger_ms=0, transaction_timeout_ms=2000
        ) as first:

            def never_answered() -> None:
                with first.transaction(consumer):
                    for record in records:
                        first.send_and_wait(outgoing, record.value)
                    if lost == "the request":
                        broker.faults.drop("EndTxn", times=1_000_000)
                    else:
                        broker.faults.drop_reply("EndTxn", times=1_000_000)

            with pytest.raises(BrokerError, match="was not confirmed"):
                never_answered()
        broker.faults.heal()
        copy_all(broker.bootstrap, incoming, outgoing, consumer, "copying", 6)
    copied = scan({"bootstrap.servers": broker.bootstrap}, {TopicPartition(outgoing, 0): None})
    assert [record.value for record in copied] == [str(number).encode() for number in range(6)]


def test_what_a_fenced_producer_could_not_commit_is_processed_by_the_next(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    incoming, outgoing, name = new_topic(), new_topic(), unique("txn")
    source(bootstrap, incoming, 4)
    with reader(bootstrap, incoming, group) as consumer:
        records = consumer.poll(30, max_records=2)
        with (
            Producer(bootstrap, transactional_id=name, linger_ms=0) as older,
            Producer(bootstrap, transactional_id=name) as newer,
        ):

            def overtaken() -> None:
                with older.transaction(consumer):
                    for record in records:
                        older.send_and_wait(outgoing, record.value)
                    with newer.transaction():
                        pass

            with pytest.raises(FencedError):
                overtaken()
        copy_all(bootstrap, incoming, outgoing, consumer, name, 4)
    assert [record.value for record in read_all(outgoing)] == [b"0", b"1", b"2", b"3"]


async def test_a_block_cancelled_while_it_ends_has_ended_when_the_task_goes_on(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    async with AsyncProducer(bootstrap, transactional_id=unique("txn")) as producer:
        ending, go_on = threading.Event(), threading.Event()
        commit = producer._transaction.commit

        def slowly() -> None:
            ending.set()
            go_on.wait(60)
            commit()

        async def block() -> None:
            async with producer.transaction():
                await producer.send(topic, "committed")

        with monkeypatch.context() as patched:
            patched.setattr(producer._transaction, "commit", slowly)
            task = asyncio.create_task(block())
            await asyncio.to_thread(ending.wait, 60)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
                assert not task.done()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        async with producer.transaction():
            await producer.send(topic, "next")
    assert [record.value for record in read_all(topic)] == [b"committed", b"next"]
