"""Transactions as clients use them: all or nothing, zombies fenced, read_committed never shows what was aborted."""

import asyncio
import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AIOTopicPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonTopicPartition
from kafka.structs import OffsetAndMetadata

from tests.server.clients import create, messages


@pytest.fixture
def names(bootstrap):
    prefix = uuid.uuid4().hex[:8]
    names = [f"in-{prefix}", f"out-{prefix}"]
    for name in names:
        create(bootstrap, name, partitions=2)
    return names


def transactional(bootstrap, transactional_id, **settings):
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0, **settings}
    )
    producer.init_transactions(30)
    return producer


def read(bootstrap, topic, isolation="read_committed"):
    found = messages(bootstrap, topic, partitions=2, **{"isolation.level": isolation})
    return sorted(message.value() for message in found)


def test_a_committed_transaction_shows_whole_and_an_aborted_one_not_at_all(bootstrap, names):
    producer = transactional(bootstrap, f"tx-{names[0]}")
    for round_, commit in enumerate([True, False, True, False, True]):
        producer.begin_transaction()
        for partition in (0, 1):
            for number in range(10):
                producer.produce(names[0], b"%d-%d-%d" % (round_, partition, number), partition=partition)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)
    expected = sorted(b"%d-%d-%d" % (r, p, n) for r in (0, 2, 4) for p in (0, 1) for n in range(10))
    assert read(bootstrap, names[0]) == expected
    assert len(read(bootstrap, names[0], "read_uncommitted")) == 100


def test_an_open_transaction_holds_the_last_stable_offset(bootstrap, names):
    producer = transactional(bootstrap, f"tx-{names[0]}")
    producer.begin_transaction()
    producer.produce(names[0], b"undecided", partition=0)
    producer.flush(30)
    plain = Producer({"bootstrap.servers": bootstrap})
    plain.produce(names[0], b"plain", partition=0)
    plain.flush(30)
    assert read(bootstrap, names[0]) == []
    assert read(bootstrap, names[0], "read_uncommitted") == [b"plain", b"undecided"]
    producer.commit_transaction(30)
    assert read(bootstrap, names[0]) == [b"plain", b"undecided"]


def test_a_second_producer_with_the_same_id_fences_the_first(bootstrap, names):
    zombie = transactional(bootstrap, f"tx-{names[0]}")
    zombie.begin_transaction()
    zombie.produce(names[0], b"zombie", partition=0)
    zombie.flush(30)
    successor = transactional(bootstrap, f"tx-{names[0]}")
    successor.begin_transaction()
    successor.produce(names[0], b"successor", partition=0)
    successor.commit_transaction(30)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(30)
    assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    assert read(bootstrap, names[0]) == [b"successor"]


def test_offsets_move_with_the_transaction_or_not_at_all(bootstrap, names):
    source, target = names
    feeder = Producer({"bootstrap.servers": bootstrap})
    for number in range(20):
        feeder.produce(source, b"%d" % number, partition=0)
    feeder.flush(30)
    group = f"group-{source}"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(source, 0, 0)])
    producer = transactional(bootstrap, f"tx-{source}")

    def step(commit):
        producer.begin_transaction()
        batch = consumer.consume(10, 30)
        for message in batch:
            producer.produce(target, message.value(), partition=0)
        position = [TopicPartition(source, 0, batch[-1].offset() + 1)]
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)

    def committed():
        return consumer.committed([TopicPartition(source, 0)], 30)[0].offset

    step(commit=False)
    assert committed() < 0
    consumer.seek(TopicPartition(source, 0, 0))
    step(commit=True)
    assert committed() == 10
    consumer.close()
    assert len(read(bootstrap, target)) == 10


async def test_aiokafka_commits_and_aborts(bootstrap, names):
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"aio-{names[0]}") as producer:
        async with producer.transaction():
            await producer.send_and_wait(names[0], b"kept", partition=0)
        await producer.begin_transaction()
        await producer.send_and_wait(names[0], b"dropped", partition=0)
        await producer.abort_transaction()
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    await consumer.start()
    partition = AIOTopicPartition(names[0], 0)
    consumer.assign([partition])
    await consumer.seek_to_beginning(partition)
    assert (await consumer.getone()).value == b"kept"
    assert await consumer.getmany(timeout_ms=200) == {}
    await consumer.stop()


def test_kafka_python_commits_and_aborts_with_offsets(bootstrap, names):
    source, target = names
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=source,
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"python-{source}")
    producer.init_transactions()
    for value, commit in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        producer.begin_transaction()
        producer.send(target, value, partition=0)
        offsets = {PythonTopicPartition(source, 0): OffsetAndMetadata(3 if commit else 99, "", -1)}
        producer.send_offsets_to_transaction(offsets, source)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    partition = PythonTopicPartition(target, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found = []
    while len(found) < 2:
        found += [each.value for records in consumer.poll(1000).values() for each in records]
    assert found == [b"kept", b"kept too"]
    assert consumer.committed(PythonTopicPartition(source, 0)) == 3
    consumer.close()


def test_readers_of_committed_records_never_see_an_aborted_one(make_broker):
    """Several producers at once, a broker killed in the middle, and a reader that follows all the time."""
    broker = make_broker()
    topic = broker.create_topic(partitions=2)
    committed, lock = set(), threading.Lock()

    def write(number):
        producer = transactional(broker.bootstrap, f"{topic}-{number}")
        chance = random.Random(number)
        for round_ in range(30):
            values = {f"{number}-{round_}-{index}" for index in range(chance.randint(1, 4))}
            producer.begin_transaction()
            for value in values:
                producer.produce(topic, value, partition=chance.randint(0, 1))
            producer.flush(60)
            if chance.random() < 0.5:
                producer.commit_transaction(60)
                with lock:
                    committed.update(value.encode() for value in values)
            else:
                producer.abort_transaction(60)

    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
    with ThreadPoolExecutor(3) as writers:
        writing = [writers.submit(write, number) for number in range(3)]
        seen, restarted = [], False
        while not all(each.done() for each in writing):
            if len(seen) > 20 and not restarted:
                broker.kill()
                broker.start()
                restarted = True
            if (message := consumer.poll(0.1)) is not None and message.error() is None:
                seen.append(message.value())
        for each in writing:
            each.result()
    while len(seen) < len(committed):
        message = consumer.poll(60)
        assert message is not None
        if message.error() is None:
            seen.append(message.value())
    consumer.close()
    assert restarted
    assert sorted(seen) == sorted(committed)
    assert read(broker.bootstrap, topic) == sorted(committed)
    assert len(read(broker.bootstrap, topic, "read_uncommitted")) > len(committed)


def test_a_restart_between_decision_and_markers_finishes_the_transaction(make_broker):
    broker = make_broker()
    create(broker.bootstrap, "kept", partitions=2)
    producer = transactional(broker.bootstrap, "tx")
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce("kept", b"%d" % partition, partition=partition)
    producer.flush(30)

    async def hold_markers(node):
        coordinator = node.transactions.coordinator

        async def never(transaction, epoch):
            await asyncio.Event().wait()

        coordinator._ending._send_markers = never

    broker.run(hold_markers)
    producer.commit_transaction(30)
    assert read(broker.bootstrap, "kept") == []
    broker.stop()
    broker.start()
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "r", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("kept", partition, 0) for partition in (0, 1)])
    found = []
    while len(found) < 2:
        message = consumer.poll(30)
        assert message is not None
        assert not message.error()
        found.append(message.value())
    assert sorted(found) == [b"0", b"1"]
    consumer.close()
