"""A disk that is full or fails: producers get an error, other partitions are not affected, nothing acknowledged is damaged."""

import errno
import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.disk import FaultyFiles
from headrace.testing.wire import WireClient, batch
from headrace.wire.batch import iterate_batches
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.records import decode_records
from tests.server.requests import fetch_request, produce_request, produced


@pytest.fixture
def files():
    return FaultyFiles()


@pytest.fixture
def running(make_broker, files):
    broker = make_broker(files=files)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topics = [
        NewTopic("sick", 1),
        NewTopic("sound", 1),
        NewTopic("synced", 1, config={"flush.messages": "1"}),
    ]
    for made in admin.create_topics(topics).values():
        made.result(30)
    return broker


@pytest.fixture
def client(running):
    with WireClient(running.bootstrap) as client:
        yield client


def produce(client, topic, value):
    return produced(client, produce_request(topic, batch(value)))


def values(client, topic):
    reply = client.call(fetch_request(topic), 11).responses[0].partitions[0]
    assert reply.error_code == 0, ErrorCode(reply.error_code)
    data = memoryview(reply.records)
    found = []
    for position, header in iterate_batches(data):
        batch_data = data[position : position + header.size]
        found += [bytes(record.value) for record in decode_records(batch_data, header)]
    return found


def test_a_full_disk_refuses_and_works_again_when_there_is_room(client, files):
    assert produce(client, "sick", b"before") is ErrorCode.NONE
    files.where, files.write_error = "sick-0", errno.ENOSPC
    assert produce(client, "sick", b"no room") is ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(client, "sound", b"goes on") is ErrorCode.NONE
    assert values(client, "sick") == [b"before"]
    files.heal()
    assert produce(client, "sick", b"after") is ErrorCode.NONE
    assert values(client, "sick") == [b"before", b"after"]


def test_a_failing_write_takes_one_partition_offline_until_the_disk_works(client, running, files):
    assert produce(client, "sick", b"before") is ErrorCode.NONE
    files.where, files.write_error = "sick-0", errno.EIO
    assert produce(client, "sick", b"lost") is ErrorCode.KAFKA_STORAGE_ERROR
    files.heal()
    assert produce(client, "sick", b"still offline") is ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(client, "sound", b"goes on") is ErrorCode.NONE
    running.run(lambda node: node.maintenance.retry_offline())
    assert produce(client, "sick", b"after") is ErrorCode.NONE
    assert values(client, "sick") == [b"before", b"after"]


def test_a_failed_fsync_is_never_acknowledged_and_never_simply_tried_again(client, running, files):
    assert produce(client, "synced", b"before") is ErrorCode.NONE
    files.where, files.sync_error = "synced-0", errno.EIO
    assert produce(client, "synced", b"not on disk") is ErrorCode.KAFKA_STORAGE_ERROR
    files.heal()
    assert produce(client, "synced", b"offline") is ErrorCode.KAFKA_STORAGE_ERROR
    running.run(lambda node: node.maintenance.retry_offline())
    assert produce(client, "synced", b"after") is ErrorCode.NONE
    found = values(client, "synced")
    assert found[0] == b"before"
    assert found[-1] == b"after"


def test_after_a_full_disk_a_restart_finds_everything_acknowledged(client, running, files):
    assert produce(client, "sick", b"before") is ErrorCode.NONE
    files.where, files.write_error = "sick-0", errno.ENOSPC
    assert produce(client, "sick", b"no room") is ErrorCode.KAFKA_STORAGE_ERROR
    files.heal()
    running.stop()
    running.start()
    with WireClient(running.bootstrap) as again:
        assert values(again, "sick") == [b"before"]


def test_a_coordinator_knows_only_what_its_log_has_after_the_disk_failed(running):
    """A commit that recovery does not find must not be answered from memory, nor be built upon."""
    group = {"bootstrap.servers": running.bootstrap, "group.id": "billing", "enable.auto.commit": False}
    consumer = Consumer(group)

    def commit(offset):
        consumer.commit(offsets=[TopicPartition("sound", 0, offset)], asynchronous=False)

    def committed():
        return consumer.committed([TopicPartition("sound", 0)], 30)[0].offset

    async def written(node):
        return next(
            log for log in node.logs.logs.values() if log.topic == "__consumer_offsets" and log.log_end_offset
        )

    commit(4)
    log = running.run(written)
    (segment,) = Path(log.directory).glob("*.log")
    kept = log.load().active.size
    commit(5)
    assert committed() == 5

    async def lose_the_last_record(node):
        log.take_offline("the disk failed")
        os.truncate(segment, kept)
        await node.maintenance.retry_offline()

    running.run(lose_the_last_record)
    assert committed() == 4
    commit(6)
    assert committed() == 6
    consumer.close()


def test_a_store_that_takes_nothing_holds_up_no_other_request_of_a_connection(make_broker):
    broker = make_broker()

    async def limit(node, pages):
        store = node.cluster._store._store
        (now,) = store._database.execute("PRAGMA page_count").fetchone()
        store._database.execute(f"PRAGMA max_page_count={pages or now}")  # as a full disk is to SQLite

    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["a group"])
    with WireClient(broker.bootstrap) as client:
        broker.run(lambda node: limit(node, 0))
        for _ in range(3):
            (found,) = client.call(find, 4).coordinators
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert client.call(MetadataRequest(topics=None), 9).brokers
        broker.run(lambda node: limit(node, 1_000_000))
        deadline = time.monotonic() + 60
        while client.call(find, 4).coordinators[0].error_code and time.monotonic() < deadline:
            pass
        assert client.call(find, 4).coordinators[0].error_code == 0
