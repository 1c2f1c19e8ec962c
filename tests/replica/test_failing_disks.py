"""A disk that fails under one replica: the others of its broker go on."""

import errno
import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from headrace.testing.disk import FaultyFiles


@pytest.fixture
def disks():
    return {number: FaultyFiles() for number in (1, 2)}


@pytest.fixture
def cluster(tmp_path, disks):
    def make(directory, settings):
        return BrokerThread(directory, settings, files=disks[int(settings["node.id"])])

    running = Cluster(
        make, tmp_path, 2, {"replica.lag.time.max.ms": "2000", "replica.fetch.backoff.ms": "200"}
    )
    admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
    topics = [NewTopic(name, 1, replica_assignment=[[1, 2]]) for name in ("sick", "sound")]
    for made in admin.create_topics(topics).values():
        made.result(30)
    yield running
    for disk in disks.values():
        disk.heal()
    running.stop()


def produce(cluster, topic, *values, acks="all"):
    """Delivered to whoever leads, however often a client has to ask who that is."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": acks, "log_level": 0})
    failures = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(60) == 0
    assert failures == []


def end(cluster, broker, topic):
    async def look(node):
        return node.logs.get(topic, 0).log_end_offset

    return cluster[broker].run(look)


def state(cluster, topic):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    return admin.list_topics(topic, 30).topics[topic].partitions[0]


def until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"did not come true: {what}"
        time.sleep(0.05)


def test_a_follower_whose_disk_fails_for_one_partition_goes_on_with_the_others(cluster, disks):
    for topic in ("sick", "sound"):
        produce(cluster, topic, b"before")
    disks[2].where, disks[2].write_error = "sick-0", errno.EIO
    produce(cluster, "sick", b"not on 2", acks="1")
    until(lambda: state(cluster, "sick").isrs == [1], "the sick replica leaves the ISR")
    produce(cluster, "sound", *(b"%d" % number for number in range(10)))
    until(lambda: end(cluster, 2, "sound") == 11, "the sound one follows")
    disks[2].heal()
    cluster[2].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(state(cluster, "sick").isrs) == {1, 2}, "the healed replica is back in the ISR")


def test_a_leader_whose_disk_fails_lets_another_lead_and_nothing_is_lost(cluster, disks):
    produce(cluster, "sick", b"committed")
    disks[1].where, disks[1].write_error = "sick-0", errno.EIO
    produce(cluster, "sick", b"goes on")  # Delivered only when broker 2 leads.

    async def log_of(node):
        return node.logs.get("sick", 0)

    # The disk comes back without the record that was committed while it worked.
    log = cluster[1].run(log_of)
    until(lambda: log.offline_reason is not None, "the log is offline")
    os.truncate(next(Path(log.directory).glob("*.log")), 0)
    disks[1].heal()
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(state(cluster, "sick").isrs) == {1, 2}, "broker 1 is back in the ISR")
    until(lambda: end(cluster, 1, "sick") == end(cluster, 2, "sick") == 2, "both have everything")
    contents = [next((broker.data / "sick-0").glob("*.log")).read_bytes() for broker in cluster]
    assert contents[0] == contents[1]
    assert b"committed" in contents[0]


def test_a_log_that_failed_is_not_led_again_while_others_in_sync_have_more(cluster):
    produce(cluster, "sick", b"committed")

    def led_by_1_and_in_sync():
        found = state(cluster, "sick")
        return found.leader == 1 and set(found.isrs) == {1, 2}

    until(led_by_1_and_in_sync, "broker 1 leads, and 2 is in sync")

    async def fail_and_retry(node):
        log = node.logs.get("sick", 0)
        log.take_offline("the disk failed")
        await node.maintenance.retry_offline()
        return log.offline_reason

    assert cluster[1].run(fail_and_retry) == "the disk failed"
    until(lambda: state(cluster, "sick").leader == 2, "broker 2 leads")
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(state(cluster, "sick").isrs) == {1, 2}, "broker 1 is back in the ISR")
