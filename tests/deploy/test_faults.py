"""Each fault that deploy/prometheus warns of, on a real cluster with a real Prometheus: its alert fires, and resolves once it is repaired."""

import asyncio
import errno
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, Producer

from headrace.client import Admin, TopicPartition
from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from headrace.testing.process import BrokerProcess
from tests.certificates import Certificates
from tests.deploy.prometheus import PATIENCE, Prometheus
from tests.server.clients import create, partition_of
from tests.waiting import until

SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "replica.lag.time.max.ms": 2000,
    "replica.high.watermark.checkpoint.interval.ms": 500,
}


def free_address():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Broker 1 has one that ends in ten days."""
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    made.issue("broker", "localhost", not_after=datetime.now(UTC) + timedelta(days=10))
    return made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, certificates):
    """Tests stop brokers 2 and 3. Broker 1 stays, and has a listener with TLS."""

    def make(directory, settings):
        own = {**settings, "headrace.metrics.listener": free_address()}
        if settings["node.id"] == "1":
            plain = f"PLAINTEXT://{free_address()}"
            own |= certificates.listener(listeners=f"{plain},SSL://localhost:0")
        return BrokerThread(directory, own)

    with Cluster(make, tmp_path_factory.mktemp("brokers"), 3, SETTINGS) as cluster:
        yield cluster


NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
"""A program in one may mount what it likes."""


class OnSmallDisk(BrokerProcess):
    """Its data is on a disk of 64 MB, which goes when the broker stops."""

    def command(self):
        self.data.mkdir(exist_ok=True)
        mount = 'mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"'
        return [*NAMESPACE, "sh", "-c", mount, str(self.data), *super().command()]


@pytest.fixture(scope="module")
def joining(tmp_path_factory, cluster):
    """Brokers 4 and 5, each a process of its own that tests start when they need it."""
    folder = tmp_path_factory.mktemp("processes")

    def make(kind, broker_id):
        settings = {**SETTINGS, "node.id": broker_id, "headrace.store": cluster.store.socket}
        settings["headrace.metrics.listener"] = free_address()
        return kind(folder / f"broker-{broker_id}", {name: str(value) for name, value in settings.items()})

    return {4: make(BrokerProcess, 4), 5: make(OnSmallDisk, 5)}


@pytest.fixture(scope="module")
def prometheus(tools, cluster, joining, tmp_path_factory):
    targets = [each.settings["headrace.metrics.listener"] for each in (*cluster, *joining.values())]
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), targets)
    try:
        until(server.answers, "Prometheus", PATIENCE)
        yield server
    finally:
        server.stop()


@pytest.fixture
def fires(prometheus):
    def wait(alert, **labels):
        until(lambda: alert in prometheus.firing(**labels), f"{alert} fires", PATIENCE)

    return wait


@pytest.fixture
def resolves(prometheus):
    def wait(alert, **labels):
        until(lambda: alert not in prometheus.firing(**labels), f"{alert} resolves", PATIENCE)

    return wait


@pytest.fixture
def admin(cluster):
    with Admin(cluster.bootstrap) as admin:
        yield admin


def produce(bootstrap, topic, count, **record):
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0, **record)
    assert producer.flush(90) == 0


@contextmanager
def steady_producer(bootstrap, topic):
    """One record after another, each acknowledged before the next."""
    over = threading.Event()

    def work():
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
        while not over.is_set():
            producer.produce(topic, b"x")
            producer.flush(90)
            over.wait(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# Replicas and the controller


def test_too_few_replicas_in_sync(cluster, fires, resolves):
    topic = cluster.create_topic("payments", 1, 3, {"min.insync.replicas": 3})
    cluster[3].kill()
    fires("HeadraceUnderMinIsr")
    cluster[3].start()
    resolves("HeadraceUnderMinIsr")
    assert len(partition_of(cluster.bootstrap, topic).isrs) == 3


@pytest.mark.long
def test_a_leader_from_outside_the_isr(cluster, admin, fires, resolves):
    create(cluster.bootstrap, "guesses", [2, 3])
    produce(cluster.bootstrap, "guesses", 1)
    cluster[3].kill()
    until(lambda: partition_of(cluster[1].bootstrap, "guesses").isrs == [2], "broker 2 is alone in sync")
    produce(cluster.bootstrap, "guesses", 1)
    cluster[2].kill()
    until(lambda: partition_of(cluster[1].bootstrap, "guesses").leader == -1, "nobody leads")
    cluster[3].start()
    admin.set_topic_config("guesses", {"unclean.leader.election.enable": "true"})
    fires("HeadraceUncleanElection")
    cluster[2].start()
    resolves("HeadraceUncleanElection")  # Once it is long enough ago.


def test_a_cluster_without_its_store(cluster, fires, resolves):
    cluster.store.halt()
    fires("HeadraceNoController")
    cluster.store.start()
    resolves("HeadraceNoController")


@pytest.mark.long
def test_a_broker_that_starts_again_and_again(joining, prometheus, fires, resolves):
    broker = joining[4]
    started = f'process_start_time_seconds{{instance="{broker.settings["headrace.metrics.listener"]}"}}'
    seen = set()

    def seen_anew():
        found = {each["value"][1] for each in prometheus.query(started)} - seen
        seen.update(found)
        return found

    try:
        for _ in range(4):
            broker.start()
            until(seen_anew, "Prometheus sees the start", PATIENCE)
            broker.kill()
        broker.start()
        fires("HeadraceBrokerRestarting")
        resolves("HeadraceBrokerRestarting")  # Once it has run long enough.
    finally:
        broker.stop()


# Disks, certificates and load


def test_a_disk_that_fails(cluster, prometheus, fires):
    create(cluster.bootstrap, "kept", [2])
    instance = cluster[2].settings["headrace.metrics.listener"]
    cluster[2].disk.where, cluster[2].disk.write_error = str(cluster[2].data), errno.EIO
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    producer.produce("kept", b"is written when the disk works again")
    fires("HeadraceDirectoryFailed", instance=instance)
    cluster[2].disk.heal()

    def resolves_when_tried_again():
        cluster[2].run(lambda node: node.maintenance.retry_offline())  # As the broker does every 30 seconds.
        return "HeadraceDirectoryFailed" not in prometheus.firing(instance=instance)

    until(resolves_when_tried_again, "HeadraceDirectoryFailed resolves", PATIENCE)
    assert producer.flush(90) == 0


@pytest.mark.long
def test_a_disk_that_fills(cluster, joining, prometheus, admin, resolves):
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        pytest.skip("unshare may not mount a disk here")
    broker = joining[5]
    broker.start()
    try:
        create(cluster.bootstrap, "large", [5])
        instance = broker.settings["headrace.metrics.listener"]
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

        def write(size):
            producer.produce("large", bytes(size))
            assert producer.flush(90) == 0

        def fires_while_more_is_written():
            write(20_000)
            return "HeadraceDiskFilling" in prometheus.firing(instance=instance)

        for _ in range(47):
            write(900_000)
            write(100_000)
        until(fires_while_more_is_written, "HeadraceDiskFilling fires", PATIENCE)
        admin.delete_topic("large")
        resolves("HeadraceDiskFilling", instance=instance)
    finally:
        broker.stop()


def test_a_certificate_that_ends_soon(certificates, fires, resolves):
    fires("HeadraceCertificateEnds", listener="SSL")
    certificates.issue("broker", "localhost", not_after=datetime.now(UTC) + timedelta(days=90))
    resolves("HeadraceCertificateEnds", listener="SSL")


def test_a_broker_without_a_moment_to_rest(cluster, fires, resolves):
    instance = cluster[3].settings["headrace.metrics.listener"]
    over = threading.Event()

    async def spin(_):
        while not over.is_set():
            until_then = time.monotonic() + 0.1
            while time.monotonic() < until_then:
                pass
            await asyncio.sleep(0)

    spinning = threading.Thread(target=lambda: cluster[3].run(spin))
    spinning.start()
    try:
        fires("HeadraceBusy", instance=instance)
    finally:
        over.set()
        spinning.join()
    resolves("HeadraceBusy", instance=instance)


@pytest.mark.long
def test_a_disk_that_takes_its_time(cluster, fires, resolves):
    create(cluster.bootstrap, "synced", [1])
    with Admin(cluster.bootstrap) as admin:
        admin.set_topic_config("synced", {"flush.messages": "1"})
    with steady_producer(cluster.bootstrap, "synced"):
        cluster[1].disk.where, cluster[1].disk.sync_seconds = "synced-0", 1.5
        fires("HeadraceSlowProduce")
        cluster[1].disk.heal()
        resolves("HeadraceSlowProduce")


# Groups


def test_a_group_that_is_far_behind(cluster, admin, fires, resolves):
    topic = cluster.create_topic("old", 1, 1)
    produce(cluster.bootstrap, topic, 3, timestamp=int(time.time() - 1200) * 1000)
    admin.set_group_offsets("late", {TopicPartition(topic, 0): 0})
    fires("HeadraceLagOld", consumergroup="late")
    admin.set_group_offsets("late", {TopicPartition(topic, 0): 3})
    resolves("HeadraceLagOld", consumergroup="late")


def test_a_group_whose_members_have_left(cluster, fires, resolves):
    topic = cluster.create_topic("left", 1, 1)
    produce(cluster.bootstrap, topic, 3)
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "leavers",
        "auto.offset.reset": "earliest",
    }

    def read():
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        until(lambda: consumer.poll(1.0), "a record", PATIENCE)
        consumer.commit(asynchronous=False)
        return consumer

    read().close()
    produce(cluster.bootstrap, topic, 3)
    fires("HeadraceGroupGone", consumergroup="leavers")
    consumer = read()
    resolves("HeadraceGroupGone", consumergroup="leavers")
    consumer.close()


def test_records_deleted_before_they_were_read(cluster, admin, fires, resolves):
    topic = cluster.create_topic("deleted", 1, 1)
    place = TopicPartition(topic, 0)
    produce(cluster.bootstrap, topic, 10)
    admin.set_group_offsets("losers", {place: 2})
    admin.delete_records({place: 5})
    fires("HeadraceRecordsLost", consumergroup="losers")
    admin.set_group_offsets("losers", {place: 5})
    resolves("HeadraceRecordsLost", consumergroup="losers")
