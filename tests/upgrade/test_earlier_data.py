"""A data directory of the earlier version, opened by this one: everything is there, and work goes on from it."""

import json
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.upgrade import contents
from tests.upgrade.contents import PATIENCE, as_record, read, values
from tests.upgrade.earlier import FIXTURE, TODAY
from tests.upgrade.running import Up
from tests.waiting import until


@dataclass(slots=True)
class Opened:
    """A copy of a kept directory, served."""

    bootstrap: str
    brokers: int
    admin: AdminClient


@pytest.fixture(scope="module", params=[("single", 1), ("cluster", 3)], ids=["one-broker", "three-brokers"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    name, brokers = request.param
    place = tmp_path_factory.mktemp("earlier")
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(place, filter="data")
    options = ["--brokers", str(brokers)] if brokers > 1 else []
    with Up(TODAY, place / name, contents.KEPT, *options) as up:
        yield Opened(up.bootstrap, brokers, AdminClient({"bootstrap.servers": up.bootstrap}))


def test_the_topics_are_there_and_the_deleted_one_is_not(opened: Opened) -> None:
    topics = opened.admin.list_topics(timeout=PATIENCE).topics
    shown = {name: len(topic.partitions) for name, topic in topics.items() if not name.startswith("__")}
    assert shown == {"codecs": len(contents.CODECS), "transactions": 1, "open": 1, "table": 1}
    replicas = {len(part.replicas) for topic in topics.values() for part in topic.partitions.values()}
    assert replicas == {opened.brokers}


@pytest.mark.parametrize("codec", contents.CODECS)
def test_records_are_as_they_were_written_whatever_their_compression(opened: Opened, codec: str) -> None:
    found = read(opened.bootstrap, "codecs", contents.CODECS.index(codec))
    assert [as_record(message) for message in found[: contents.RECORDS]] == contents.codec_records()


def test_committed_transactions_are_seen_and_aborted_ones_are_not(opened: Opened) -> None:
    committed = [b"committed-0", b"committed-1", b"committed-3", b"committed-4"]
    assert values(read(opened.bootstrap, "transactions")) == committed
    everything = values(read(opened.bootstrap, "transactions", isolation="read_uncommitted"))
    assert set(everything) == {*committed, b"aborted-2", b"aborted-5"}


def test_an_open_transaction_is_ended_by_the_next_producer_of_its_id(opened: Opened) -> None:
    assert b"undecided" in values(read(opened.bootstrap, "open", isolation="read_uncommitted"))
    producer = Producer(
        {"bootstrap.servers": opened.bootstrap, "transactional.id": contents.OPEN_ID, "acks": "all"}
    )
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce("open", b"after")
    producer.commit_transaction(PATIENCE)
    until(
        lambda: values(read(opened.bootstrap, "open")) == [b"before", b"after"],
        "what was committed is seen",
    )


def test_a_compacted_topic_keeps_the_last_value_of_each_key(opened: Opened) -> None:
    latest = {message.key(): message.value() for message in read(opened.bootstrap, "table")}
    last = contents.ROUNDS - 1
    assert latest.pop(b"0", None) is None, "it was deleted last"
    assert latest == {b"%d" % key: b"%d-%d" % (key, last) for key in range(1, contents.KEYS)}


@pytest.mark.parametrize("group", contents.GROUPS)
def test_groups_of_both_protocols_go_on_from_their_offsets(opened: Opened, group: str) -> None:
    protocol, offsets = contents.GROUPS[group]
    (listed,) = [
        entry
        for entry in opened.admin.list_consumer_groups(request_timeout=PATIENCE).result().valid
        if entry.group_id == group
    ]
    assert listed.type is not None
    assert listed.type.name.lower() == protocol
    asked = opened.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    committed = asked[group].result(PATIENCE).topic_partitions
    assert committed is not None
    assert {(where.partition, where.offset, where.metadata) for where in committed} == {
        (partition, offset, group) for partition, offset in enumerate(offsets)
    }
    consumer = Consumer(
        {"bootstrap.servers": opened.bootstrap, "group.id": group, "group.protocol": protocol}
    )
    first: dict[int, int] = {}

    def all_have_begun() -> bool:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            first.setdefault(partition, offset)
        return len(first) == len(offsets)

    try:
        consumer.subscribe(["codecs"])
        until(all_have_begun, "the group reads every partition")
    finally:
        consumer.close()
    assert first == dict(enumerate(offsets))


def described(opened: Opened, *what: str) -> dict[str, str]:
    command = [*TODAY, "configs", "describe", *what, "--json", "-b", opened.bootstrap]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {entry["name"]: entry["value"] for entry in json.loads(said)}


def test_settings_of_topics_and_brokers_are_kept(opened: Opened) -> None:
    assert contents.TOPIC_SETTING.items() <= described(opened, "topic", "codecs").items()
    assert contents.COMPACTED.items() <= described(opened, "topic", "table").items()
    assert dict([contents.CLUSTER_SETTING]).items() <= described(opened, "broker").items()
    own = described(opened, "broker", "1")
    assert dict([contents.CLUSTER_SETTING, contents.BROKER_SETTING]).items() <= own.items()


def test_new_records_follow_the_old_ones(opened: Opened) -> None:
    offsets: list[int | None] = []
    producer = Producer({"bootstrap.servers": opened.bootstrap, "enable.idempotence": True})
    for number in range(3):
        producer.produce(
            "codecs",
            b"new-%d" % number,
            partition=1,
            on_delivery=lambda error, message: offsets.append(message.offset() if error is None else None),
        )
    assert producer.flush(PATIENCE) == 0
    assert offsets == [contents.RECORDS + number for number in range(3)]
    consumer = Consumer({"bootstrap.servers": opened.bootstrap, "group.id": "ends"})
    low, high = consumer.get_watermark_offsets(TopicPartition("codecs", 1), PATIENCE)
    consumer.close()
    assert (low, high) == (0, contents.RECORDS + 3)
