"""A leader whose disk is full: another that has room leads until there is some, and nothing acknowledged is lost."""

import shutil
import subprocess

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka import KafkaError as ClientError

from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster, processes
from headrace.testing.disk import FaultyFiles
from tests.server import clients
from tests.server.replica.logs import log_bytes
from tests.waiting import until

TOPIC = "orders"
SETTINGS = {
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "200",
    "offsets.topic.num.partitions": "1",
}
IN_SYNC = {"min.insync.replicas": "2"}
IDEMPOTENT = {"enable.idempotence": True}
"""A record may be appended before it is refused, so the broker must recognize a retry."""


def create(cluster):
    clients.create(cluster.bootstrap, TOPIC, [1, 2, 3], config=IN_SYNC)
    produce(cluster, b"before")
    until(lambda: state(cluster)[1] == {1, 2, 3}, "all are in sync")


def state(cluster):
    """(the leader, the ISR)"""
    found = clients.partition_of(cluster.bootstrap, TOPIC)
    return found.leader, set(found.isrs)


def produce(cluster, *values):
    clients.produce(cluster.bootstrap, TOPIC, *values, **IDEMPOTENT)


def read(cluster):
    return clients.values(cluster.bootstrap, TOPIC)


def elect_preferred(cluster):
    """The error of trying to make broker 1 the leader, None when it worked."""
    admin = clients.admin_of(cluster.bootstrap)
    elected = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(TOPIC, 0)]).result(60)
    return elected[TopicPartition(TOPIC, 0)]


def logs(cluster):
    return {log_bytes(broker, TOPIC) for broker in cluster}


@pytest.fixture
def small_disk(tmp_path):
    """Broker 1's data, on a disk of its own of 24 MiB."""
    place = tmp_path / "broker-1"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place):
    (place / "ballast").write_bytes(bytes(shutil.disk_usage(place).free))


def test_a_leader_on_a_full_disk_is_replaced_and_returns_by_itself_when_there_is_room(tmp_path, small_disk):
    with processes(tmp_path, 3, SETTINGS) as cluster:
        create(cluster)
        assert state(cluster)[0] == 1
        fill(small_disk)
        during = [b"%d" % number + bytes(5000) for number in range(200)]
        produce(cluster, *during)  # Delivered only when another leads.
        assert state(cluster)[0] in (2, 3)
        assert read(cluster) == [b"before", *during]
        # It keeps serving, and does not become the leader again while it has no room.
        assert 1 not in state(cluster)[1]
        assert elect_preferred(cluster).code() == ClientError.PREFERRED_LEADER_NOT_AVAILABLE
        assert cluster[1].process.poll() is None

        (small_disk / "ballast").unlink()
        until(lambda: state(cluster)[1] == {1, 2, 3}, "broker 1 has caught up")
        until(lambda: elect_preferred(cluster) is None, "broker 1 may lead again")
        produce(cluster, b"after")
        assert state(cluster)[0] == 1
        assert read(cluster) == [b"before", *during, b"after"]
        until(lambda: len(logs(cluster)) == 1, "all replicas are equal")
        assert list(small_disk.glob("headrace.room*")) == []


@pytest.fixture
def disks():
    return {number: FaultyFiles() for number in (1, 2, 3)}


@pytest.fixture
def cluster(tmp_path, disks):
    def make(directory, settings):
        return BrokerThread(directory, settings, files=disks[int(settings["node.id"])])

    running = Cluster(make, tmp_path, 3, SETTINGS)
    yield running
    for disk in disks.values():
        disk.heal()
    running.stop()


def epoch_of(cluster):
    async def look(node):
        return node.cluster.image.partition(TOPIC, 0).leader_epoch

    return cluster[1].run(look)


def known_to_be_full(cluster):
    """The brokers that have reported a full disk to the controller."""

    async def look(node):
        controller = node.cluster.controller
        return controller.full_brokers if controller is not None else frozenset()

    return set().union(*(broker.run(look) for broker in cluster))


def test_when_all_disks_are_full_one_leads_on_and_nothing_is_lost(cluster, disks):
    create(cluster)
    for disk in disks.values():
        disk.fill()

    def refused():
        impatient = {**IDEMPOTENT, "message.timeout.ms": 1000}
        return clients.try_to_produce(cluster.bootstrap, TOPIC, b"refused", **impatient) != []

    until(lambda: refused() and known_to_be_full(cluster) == {1, 2, 3}, "all are known to be full")
    until(lambda: state(cluster)[1] == {1, 2, 3}, "all count as in sync, since they are")
    epoch = epoch_of(cluster)
    assert all(refused() for _ in range(5))
    assert read(cluster) == [b"before"]
    assert epoch_of(cluster) == epoch

    disks[2].heal()
    disks[3].heal()
    produce(cluster, b"after")
    assert state(cluster)[0] in (2, 3)
    assert read(cluster) == [b"before", b"after"]
    disks[1].heal()
    until(lambda: state(cluster)[1] == {1, 2, 3}, "broker 1 has caught up")
    assert len(logs(cluster)) == 1


def test_a_full_follower_is_not_elected_while_another_has_room(cluster, disks):
    create(cluster)
    disks[2].fill()
    until(lambda: known_to_be_full(cluster) == {2}, "broker 2 is known to be full")
    cluster[1].stop()
    # Broker 2 comes first in the list of replicas.
    until(lambda: state(cluster)[0] == 3, "broker 3 leads")
    cluster[1].start()
