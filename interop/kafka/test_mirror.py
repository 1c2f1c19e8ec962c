"""Headrace mirrors Apache Kafka: both logs are the same for Kafka's own dump tool, and clients go on at the same offsets."""

import json
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.provision import java
from bench.systems import Headrace
from bench.systems.kafka import Kafka, OldKafka
from interop.kafka.dataset import PARTITIONS, dataset
from interop.kafka.programs import EVERY_COMPRESSION, JAVA_CLIENT, finish

SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


def headrace(address: str, *arguments: str) -> str:
    return finish([sys.executable, "-m", "headrace.cli", *arguments, "--bootstrap-server", address], limit=60)


def status(address: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(headrace(address, "mirror", "status", "dc", "--json"))
    return found


def await_ends(address: str, ends: dict[tuple[str, int], int]) -> None:
    """Until the mirror has these partitions up to there."""
    deadline = time.monotonic() + 90
    while True:
        link = status(address)
        there = {
            (topic["name"], each["partition"]): each["end_offset"]
            for topic in link["topics"]  # type: ignore[attr-defined]
            for each in topic["partitions"]
        }
        if all(there.get(place) == end for place, end in ends.items()):
            return
        assert time.monotonic() < deadline, f"{there} instead of {ends}: {link['problems']}"
        time.sleep(0.3)


def ends_of(address: str, *topics: str) -> dict[tuple[str, int], int]:
    settings = {"bootstrap.servers": address, "group.id": "looks", "isolation.level": "read_uncommitted"}
    consumer = Consumer(settings)
    found = {}
    for topic in topics:
        for index in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
            found[topic, index] = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)[1]
    consumer.close()
    return found


def dumped(data: Path, places: Iterable[tuple[str, int]]) -> list[str]:
    """What Kafka's tool says of every batch and record of these partitions, positions in files and paths aside."""
    files = [
        str(file) for topic, index in places for file in sorted((data / f"{topic}-{index}").glob("*.log"))
    ]
    main = "org.apache.kafka.tools.DumpLogSegments"
    shown = finish(
        [*java(main), "--deep-iteration", "--print-data-log", "--files", ",".join(files)], limit=300
    )
    lines = [re.sub(r"position: \d+ ", "", line) for line in shown.splitlines()]
    return [line for line in lines if line.startswith(("baseOffset", "|"))]


def in_transaction(address: str, topic: str, name: str) -> Producer:
    settings = {"bootstrap.servers": address, "transactional.id": name, "transaction.timeout.ms": 600_000}
    producer = Producer(settings)
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(topic, f"{name}-{number}", partition=0)
    producer.flush(60)
    return producer


def read(address: str, topic: str, isolation: str) -> list[tuple[int, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reads",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(30)) is not None and not message.error():
        found.append((message.offset() or 0, message.value()))
    consumer.close()
    return found


@pytest.mark.parametrize("kafka_of", [Kafka, OldKafka], ids=["kafka-4.3", "kafka-3.9"])
def test_a_mirror_of_apache_kafka_is_the_same_log_and_goes_on_after_a_failover(
    kafka_of: type[Kafka], tmp_path: Path
) -> None:
    with (
        kafka_of().start(tmp_path / "kafka", SETTINGS) as kafka,
        Headrace().start(tmp_path / "headrace", SETTINGS) as here,
    ):
        for codec in EVERY_COMPRESSION:
            kafka.create(codec, PARTITIONS, {"retention.ms": "-1"})
            JAVA_CLIENT.write(kafka.address, codec, dataset(), codec)
        kafka.create("rolled", 1, {"segment.bytes": str(1 << 20)})
        kafka.load("produce", topic="rolled", records=50_000, size=100, batch_records=50)
        kafka.create("decided", 1)
        in_transaction(kafka.address, "decided", "one").commit_transaction(60)
        in_transaction(kafka.address, "decided", "two").abort_transaction(60)
        left_open = in_transaction(kafka.address, "decided", "three")
        topics = [*EVERY_COMPRESSION, "rolled", "decided"]
        consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("rolled", 0, 12_345)], asynchronous=False)
        consumer.close()

        headrace(here.address, "features", "set", "mirror.version=1")
        headrace(
            here.address,
            *("mirror", "create", "dc", "--source", kafka.address, "--topics", "*", "--groups", "billing"),
        )
        ends = ends_of(kafka.address, *topics)
        await_ends(here.address, ends)
        for isolation in ("read_committed", "read_uncommitted"):
            assert read(here.address, "decided", isolation) == read(kafka.address, "decided", isolation)
        committed = Consumer({"bootstrap.servers": here.address, "group.id": "billing"})
        deadline = time.monotonic() + 60
        while committed.committed([TopicPartition("rolled", 0)], timeout=30)[0].offset != 12_345:
            assert time.monotonic() < deadline, "the group's offset was not copied"
            time.sleep(0.3)
        committed.close()
        ours, theirs = dumped(here.data, ends), dumped(kafka.data, ends)
        assert len(ours) > 50_000
        for mine, kafkas in zip(ours, theirs, strict=True):
            assert mine == kafkas

        done = json.loads(headrace(here.address, "mirror", "failover", "dc", "--json"))
        stated = {
            (topic["name"], end["partition"]): (end["last_offset"], end["lost_records"])
            for topic in done
            for end in topic["ends"]
        }
        assert stated == {place: (end - 1, 0) for place, end in ends.items()}
        JAVA_CLIENT.write(here.address, "none", dataset(), "none")
        producer = Producer({"bootstrap.servers": here.address, "enable.idempotence": True})
        producer.produce("decided", "after")
        producer.flush(30)
        values = [value for _, value in read(here.address, "decided", "read_committed")]
        assert values == [*(f"one-{number}".encode() for number in range(5)), b"after"]
        left_open.abort_transaction(60)
