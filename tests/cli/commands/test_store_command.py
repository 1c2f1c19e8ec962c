"""`headrace store copy`: a cluster moves from its supervisor to ZooKeeper and back, with its topics and records."""

import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.cli.commands import store
from headrace.cli.failure import Failure
from headrace.testing.process import BrokerProcess
from headrace.testing.zookeeper import ZooKeeperServer
from tests.secured_zookeeper import SecuredZooKeeper, login

QUIET = {"log_level": 0}


def headrace(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "headrace.cli", *arguments], capture_output=True, text=True, timeout=60
    )


@contextmanager
def supervised(data):
    """`headrace up --brokers 2`, and where its brokers are."""
    command = [sys.executable, "-m", "headrace.cli", "up", "--brokers", "2", "--listen", "127.0.0.1:0"]
    with (
        (data.parent / "supervisor.log").open("a") as log,
        subprocess.Popen(
            [*command, "--data", str(data)], stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        line = process.stdout.readline()
        assert "is ready" in line, line
        try:
            yield line.partition(" on ")[2].partition(", data in ")[0]
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait(60)


def values(bootstrap):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **QUIET})
    consumer.assign([TopicPartition("orders", 0, 0)])
    found, deadline = [], time.monotonic() + 60
    while len(found) < 3 and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


@contextmanager
def alone(data):
    """One broker on its own store."""
    broker = BrokerProcess(data, {})
    broker.start()
    try:
        yield AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    finally:
        broker.stop()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_cluster_moves_to_zookeeper_and_back(tmp_path):
    data = tmp_path / "data"
    with supervised(data) as bootstrap:
        admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        wanted = NewTopic("orders", 1, 2, config={"retention.ms": "12345678"})
        admin.create_topics([wanted])["orders"].result(60)
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUIET})
        for value in (b"a", b"b", b"c"):
            producer.produce("orders", value, partition=0)
        assert producer.flush(60) == 0
        refused = headrace("store", "copy", str(data), "127.0.0.1:1/headrace")
        assert refused.returncode == 1
        assert "is in use by another process" in refused.stderr
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        ensemble = f"{zookeeper.connect_string}/headrace"
        moved = headrace("store", "copy", str(data), ensemble)
        assert moved.returncode == 0, moved.stderr
        again = headrace("store", "copy", str(data), ensemble)
        assert "already holds a cluster" in again.stderr
        brokers = [
            BrokerProcess(data / f"broker-{number}", {"node.id": str(number), "zookeeper.connect": ensemble})
            for number in (1, 2)
        ]
        for broker in brokers:
            broker.start()
        both = ",".join(broker.bootstrap for broker in brokers)
        assert values(both) == [b"a", b"b", b"c"]
        running = headrace("store", "copy", ensemble, str(tmp_path / "elsewhere"))
        assert "is running; stop every broker" in running.stderr
        for broker in brokers:
            assert broker.stop() == 0
        (data / "cluster.db").unlink()
        back = headrace("store", "copy", ensemble, str(data))
        assert back.returncode == 0, back.stderr
    with supervised(data) as bootstrap:
        assert values(bootstrap) == [b"a", b"b", b"c"]
        described = headrace("topics", "describe", "orders", "-b", bootstrap)
        assert "12345678" in described.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("a", "b"), "Name a data directory and a ZooKeeper address"),
        (("nowhere", "127.0.0.1:1"), "nowhere/cluster.db is not there"),
    ],
)
def test_places_that_make_no_sense_are_one_sentence(arguments, sentence):
    refused = headrace("store", "copy", *arguments)
    assert refused.returncode in (1, 2)
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_zookeeper_that_does_not_answer_is_one_sentence(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.WARNING, "headrace.kazoo")
    monkeypatch.setattr(store, "SESSION_SECONDS", 1.0)
    (tmp_path / "cluster.db").touch()
    with pytest.raises(
        Failure, match=r"ZooKeeper at 127\.0\.0\.1:1/chroot does not answer \(.*refused\); start it"
    ):
        store.copy(str(tmp_path), "127.0.0.1:1/chroot")
    assert [each for each in caplog.records if each.name == "headrace.kazoo"] == []


def test_facts_go_into_a_secured_zookeeper_and_back(tmp_path):
    with alone(tmp_path / "data") as admin:
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(60)
    secured = SecuredZooKeeper(tmp_path / "secured")
    with secured.server:
        place = f"{secured.tls_hosts}/headrace"
        file = tmp_path / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in (secured.tls() | login()).items()))
        there = headrace("store", "copy", str(tmp_path / "data"), place, "--config", str(file))
        assert there.returncode == 0, there.stderr
        file.write_text(file.read_text().replace("=secret", "=another"))
        denied = headrace("store", "copy", place, str(tmp_path / "stolen"), "--config", str(file))
        assert denied.returncode == 1
        assert "belong to another login" in denied.stderr
        assert "another" not in denied.stderr.replace("another login", "")
        file.write_text(file.read_text().replace("=another", "=secret"))
        back = headrace("store", "copy", place, str(tmp_path / "back"), "--config", str(file))
        assert back.returncode == 0, back.stderr
    with alone(tmp_path / "back") as admin:
        assert "orders" in admin.list_topics(timeout=30).topics


def test_settings_that_do_not_fit_are_one_sentence(tmp_path):
    (tmp_path / "cluster.db").touch()
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.set.acl=true\n")
    refused = headrace("store", "copy", str(tmp_path), "127.0.0.1:1/headrace", "--config", str(file))
    assert refused.returncode == 2
    assert "needs a login to own the nodes" in refused.stderr
    assert "Traceback" not in refused.stderr
