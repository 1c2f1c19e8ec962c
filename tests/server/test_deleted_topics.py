"""What a deleted topic leaves in the data directories of brokers that were away, or were killed while it was deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.server.log.directory import META
from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import processes
from headrace.testing.process import BrokerProcess
from tests.server.clients import create, delete
from tests.waiting import until

AT_ONCE = {"log.segment.delete.delay.ms": "0", "headrace.stray.retention.ms": "0"}


def write(bootstrap: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for partition in range(len(producer.list_topics(topic, 30).topics[topic].partitions)):
        producer.produce(topic, value, partition=partition)
    assert producer.flush(60) == 0


def read_one(bootstrap: str, topic: str) -> bytes:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(60)
    assert message is not None
    assert message.error() is None
    consumer.close()
    return message.value()


def folders(data: Path, topic: str) -> list[str]:
    return sorted(path.name for path in data.iterdir() if path.is_dir() and path.name.startswith(f"{topic}-"))


def test_a_broker_that_was_down_removes_the_topics_that_were_deleted_meanwhile(tmp_path):
    with processes(tmp_path, 2, AT_ONCE) as cluster:
        for topic in ("gone", "again", "kept"):
            cluster.create_topic(topic, 2)
            write(cluster.bootstrap, topic, b"old")
        away, stayed = cluster[2], cluster[1]
        away.kill()
        delete(stayed.bootstrap, "gone")
        delete(stayed.bootstrap, "again")
        cluster_of_one = AdminClient({"bootstrap.servers": stayed.bootstrap})
        until(lambda: len(cluster_of_one.list_topics(timeout=30).brokers) == 1)
        assert folders(away.data, "gone") == ["gone-0", "gone-1"]
        away.start()
        until(lambda: not folders(away.data, "gone") and not folders(away.data, "again"))
        assert folders(away.data, "kept") == ["kept-0", "kept-1"]

        away.kill()
        until(lambda: len(cluster_of_one.list_topics(timeout=30).brokers) == 1)
        delete(stayed.bootstrap, "kept")
        create(stayed.bootstrap, "kept", partitions=2)
        write(stayed.bootstrap, "kept", b"new")
        away.start()
        until(lambda: not folders(away.data, "kept"))
        assert read_one(stayed.bootstrap, "kept") == b"new"
        said = (tmp_path / "broker-2.stderr").read_text()
        assert "ERROR" not in said, said


def test_a_topic_that_was_deleted_and_created_again_keeps_its_new_records(tmp_path):
    with processes(tmp_path, 2, AT_ONCE) as cluster:
        cluster.create_topic("again", 1)
        write(cluster.bootstrap, "again", b"old")
        away, stayed = cluster[2], cluster[1]
        away.kill()
        delete(stayed.bootstrap, "again")
        away.start()
        cluster.create_topic("again", 1)
        write(cluster.bootstrap, "again", b"new")
        away.kill()
        away.start()
        until(lambda: folders(away.data, "again") == ["again-0"])
        admin = AdminClient({"bootstrap.servers": stayed.bootstrap})
        until(lambda: 2 in admin.list_topics("again", timeout=30).topics["again"].partitions[0].isrs)
        stayed.kill()
        assert read_one(away.bootstrap, "again") == b"new"


def test_a_broker_that_is_killed_right_after_a_deletion_leaves_nothing_behind(tmp_path):
    broker = BrokerProcess(tmp_path / "data", settings=AT_ONCE).start()
    try:
        create(broker.bootstrap, "gone", partitions=20)
        create(broker.bootstrap, "kept")
        write(broker.bootstrap, "kept", b"v")
        delete(broker.bootstrap, "gone")
        broker.kill()
        assert folders(broker.data, "gone")
        broker.start()
        until(lambda: not folders(broker.data, "gone"))
        assert read_one(broker.bootstrap, "kept") == b"v"
    finally:
        broker.kill()


@pytest.mark.parametrize("loss", ["an older store", "no identity"])
def test_records_stay_when_the_store_may_not_know_of_their_topic(tmp_path, loss, caplog):
    data = tmp_path / "data"
    broker = BrokerThread(data, settings=AT_ONCE).start()
    create(broker.bootstrap, "early")
    broker.stop()
    backup = tmp_path / "backup"
    shutil.copytree(data, backup)
    broker.start()
    create(broker.bootstrap, "precious")
    write(broker.bootstrap, "precious", b"v")
    broker.stop()
    for file in data.glob("cluster.db*"):
        file.unlink()
    for file in backup.glob("cluster.db*"):
        shutil.copy(file, data)
    if loss == "no identity":
        (data / META).unlink()
    broker.start()
    try:
        assert folders(data, "precious") == ["precious-0"]
        assert "Keeping partitions that belong to no topic of the cluster" in caplog.text
        assert "precious-0" in caplog.text
    finally:
        broker.stop()
    assert folders(data, "precious") == ["precious-0"]


def test_a_store_that_is_restored_from_a_backup_costs_no_records(tmp_path, caplog):
    data = tmp_path / "data"
    broker = BrokerThread(data).start()
    create(broker.bootstrap, "early")
    backup = tmp_path / "backup"
    shutil.copytree(
        data, backup
    )  # the broker runs on: nothing tells this copy from the store of its last start
    create(broker.bootstrap, "precious")
    write(broker.bootstrap, "precious", b"v")
    [log] = (data / "precious-0").glob("*.log")
    written = log.read_bytes()
    broker.stop()
    for file in data.glob("cluster.db*"):
        file.unlink()
    for file in backup.glob("cluster.db*"):
        shutil.copy(file, data)
    for _ in range(2):
        broker.start()
        broker.stop()
        [aside] = folders(data, "precious")
        assert aside.endswith("-stray")
        assert (data / aside / log.name).read_bytes() == written
    assert "Setting aside partitions that this broker no longer holds" in caplog.text
