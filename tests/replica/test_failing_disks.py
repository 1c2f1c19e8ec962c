"""A disk that fails under one replica: the others of its broker go on."""

import errno
import os
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from headrace.testing.disk import FaultyFiles
from headrace.testing.wire import WireClient, batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


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


def produce(cluster, broker, topic, value, acks=-1):
    data = PartitionProduceData(index=0, records=batch(value))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    with WireClient(cluster[broker].bootstrap, timeout=60) as client:
        reply = client.call(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics), 9)
    return ErrorCode(reply.responses[0].partition_responses[0].error_code)


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
        assert produce(cluster, 1, topic, b"before") is ErrorCode.NONE
    disks[2].where, disks[2].write_error = "sick-0", errno.EIO
    assert produce(cluster, 1, "sick", b"not on 2", acks=1) is ErrorCode.NONE
    until(lambda: state(cluster, "sick").isrs == [1], "the sick replica leaves the ISR")
    for number in range(10):
        assert produce(cluster, 1, "sound", b"%d" % number) is ErrorCode.NONE
    until(lambda: end(cluster, 2, "sound") == 11, "the sound one follows")
    disks[2].heal()
    cluster[2].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(state(cluster, "sick").isrs) == {1, 2}, "the healed replica is back in the ISR")


def test_a_leader_whose_disk_fails_lets_another_lead_and_nothing_is_lost(cluster, disks):
    assert produce(cluster, 1, "sick", b"committed") is ErrorCode.NONE

    async def log_of(node):
        return node.logs.get("sick", 0)

    disks[1].where, disks[1].write_error = "sick-0", errno.EIO
    assert produce(cluster, 1, "sick", b"refused") is ErrorCode.KAFKA_STORAGE_ERROR
    until(lambda: state(cluster, "sick").leader == 2, "broker 2 leads")
    assert produce(cluster, 2, "sick", b"goes on", acks=1) is ErrorCode.NONE
    # The disk comes back without the record that was committed while it worked.
    log = cluster[1].run(log_of)
    os.truncate(next(Path(log.directory).glob("*.log")), 0)
    disks[1].heal()
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(state(cluster, "sick").isrs) == {1, 2}, "broker 1 is back in the ISR")
    assert end(cluster, 1, "sick") == end(cluster, 2, "sick") == 2
    contents = [next((broker.data / "sick-0").glob("*.log")).read_bytes() for broker in cluster]
    assert contents[0] == contents[1]
    assert b"committed" in contents[0]


def test_a_log_that_failed_is_not_led_again_while_others_in_sync_have_more(cluster, disks):
    assert produce(cluster, 1, "sick", b"committed") is ErrorCode.NONE

    async def fail_and_retry(node):
        log = node.logs.get("sick", 0)
        log.take_offline("the disk failed")
        await node.maintenance.retry_offline()
        return log.offline_reason

    assert cluster[1].run(fail_and_retry) == "the disk failed"
    until(lambda: state(cluster, "sick").leader == 2, "broker 2 leads")
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(state(cluster, "sick").isrs) == {1, 2}, "broker 1 is back in the ISR")
