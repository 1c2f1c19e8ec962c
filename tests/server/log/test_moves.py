"""Replicas move between the directories of a broker: nothing stops meanwhile, nothing is lost, whenever the broker is killed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headrace.client.record import TopicPartition
from headrace.client.scan import scan
from headrace.server.log.futures import FINISHED
from headrace.testing.broker import BrokerThread
from headrace.testing.topics import create_topic, unique_name
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import delete_records as dr
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.waiting import until

THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


class Moving:
    """A broker with two directories."""

    def __init__(self, data: Path) -> None:
        self.paths = [str(data / "one"), str(data / "two")]
        self.broker = BrokerThread(data, {"log.dirs": ",".join(self.paths), "log.segment.bytes": 1_048_576})
        self.broker.start()
        create_topic(self.broker.bootstrap, "t", config={"file.delete.delay.ms": 0})

    def call(self, request, version):
        with WireClient(self.broker.bootstrap) as client:
            return client.call(request, version)

    def move(self, path, topic="t") -> ErrorCode:
        asked = AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [0])])
        reply = self.call(AlterReplicaLogDirsRequest([asked]), 2)
        return ErrorCode(reply.results[0].partitions[0].error_code)

    def where(self) -> dict[str, list[tuple[bool, bool]]]:
        """By directory: is it the copy, and does it lack something."""
        results = self.call(DescribeLogDirsRequest(None), 5).results
        return {
            result.log_dir: [
                (each.is_future_key, each.offset_lag > 0)
                for topic in result.topics
                if topic.name == "t"
                for each in topic.partitions
            ]
            for result in results
        }

    @property
    def here(self) -> str:
        return next(path for path in self.paths if os.path.isdir(f"{path}/t-0"))

    @property
    def elsewhere(self) -> str:
        return next(path for path in self.paths if path != self.here)

    def limit(self, rate: int | None) -> None:
        self.set(THROTTLE, rate, "")

    def set(self, name: str, value: object, broker: str = "1") -> None:
        operation, text = (1, None) if value is None else (0, str(value))
        resource = AlterConfigsResource(4, broker, [AlterableConfig(name, operation, text)])
        (answer,) = self.call(IncrementalAlterConfigsRequest([resource]), 1).responses
        assert answer.error_code == 0

    def write(self, count: int, start: int = 0, size: int = 1000) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True})
        for number in range(start, start + count):
            producer.produce("t", b"%d".ljust(size) % number, partition=0)
        assert producer.flush(60) == 0

    def read(self) -> list[int]:
        found = scan({"bootstrap.servers": self.broker.bootstrap}, {TopicPartition("t", 0): None})
        return [int(record.value) for record in found]

    def arrived(self, path) -> bool:
        return self.where()[path] == [(False, False)] and not any(
            "t-0" in name for other in self.paths if other != path for name in os.listdir(other)
        )


@pytest.fixture
def moving(tmp_path):
    moving = Moving(tmp_path)
    yield moving
    moving.broker.stop()


def test_a_replica_moves_while_it_is_written_and_read(moving):
    moving.write(3000)
    source, target = moving.here, moving.elsewhere
    stop, written = threading.Event(), [3000]

    def keep_writing():
        while not stop.is_set():
            moving.write(50, written[0])
            written[0] += 50

    thread = threading.Thread(target=keep_writing)
    thread.start()
    try:
        assert moving.move(target) is ErrorCode.NONE
        until(lambda: moving.arrived(target))
        assert moving.read()[:3000] == list(range(3000))
        assert moving.move(source) is ErrorCode.NONE
        until(lambda: moving.arrived(source))
    finally:
        stop.set()
        thread.join()
    assert moving.read() == list(range(written[0]))
    moving.broker.kill()
    moving.broker.start()
    assert moving.read() == list(range(written[0]))


def test_a_throttled_move_is_shown_and_goes_on_after_a_kill(moving):
    moving.write(3000)
    target = moving.elsewhere
    moving.limit(200_000)
    assert moving.move(target) is ErrorCode.NONE
    until(lambda: moving.where() == {moving.here: [(False, False)], target: [(True, True)]})
    moving.write(100, 3000)
    moving.broker.kill()
    moving.broker.start()
    assert moving.where()[target] == [(True, True)]
    assert moving.read() == list(range(3100))
    moving.limit(None)
    until(lambda: moving.arrived(target))
    moving.write(10, 3100)
    assert moving.read() == list(range(3110))


def test_a_transaction_that_is_open_while_its_partition_moves_ends_as_it_should(moving):
    producer = Producer({"bootstrap.servers": moving.broker.bootstrap, "transactional.id": "tx"})
    producer.init_transactions(30)
    for outcome in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce("t", b"1", partition=0)
        producer.flush(30)
        target = moving.elsewhere
        assert moving.move(target) is ErrorCode.NONE
        until(lambda target=target: moving.arrived(target))
        producer.produce("t", b"2", partition=0)
        outcome(30)
    moving.broker.kill()
    moving.broker.start()
    assert moving.read() == [1, 2]


def test_moving_back_ends_the_move_and_so_does_deleting_the_topic(moving):
    moving.write(1000)
    source, target = moving.here, moving.elsewhere
    moving.limit(0)
    for end in (lambda: moving.move(source), lambda: moving.call(delete("t"), 6)):
        assert moving.move(target) is ErrorCode.NONE
        until(lambda: moving.where()[target] == [(True, True)])
        end()
        until(lambda: not [name for name in os.listdir(target) if name.startswith("t-0")])
    assert not moving.where()[source]


def delete(topic):
    return DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=30_000)


def test_a_replica_that_is_not_there_yet_is_made_where_it_was_asked_for(moving):
    # The emptiest directory would be the other one.
    taken = moving.here
    assert moving.move("/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
    assert moving.move(taken, "new") is ErrorCode.REPLICA_NOT_AVAILABLE
    create_topic(moving.broker.bootstrap, "new")
    assert os.path.isdir(f"{taken}/new-0")


def test_what_was_deleted_from_the_start_does_not_come_back(moving):
    moving.write(500)
    asked = dr.DeleteRecordsTopic("t", [dr.DeleteRecordsPartition(0, 123)])
    assert moving.call(dr.DeleteRecordsRequest([asked], 30_000), 2).topics[0].partitions[0].error_code == 0
    target = moving.elsewhere
    assert moving.move(target) is ErrorCode.NONE
    until(lambda: moving.arrived(target))
    assert moving.read() == list(range(123, 500))
    moving.broker.kill()
    moving.broker.start()
    assert moving.read() == list(range(123, 500))


@pytest.mark.parametrize("finished", [True, False])
def test_killed_between_taking_the_log_out_of_service_and_putting_the_copy_in(moving, finished):
    moving.write(500)
    source, target = moving.here, moving.elsewhere
    moving.broker.kill()
    copy = f"{target}/t-0.{'ab' * 16}-future"
    os.rename(f"{source}/t-0", copy)
    if finished:
        Path(copy, FINISHED).touch()
    moving.broker.start()
    assert not os.path.exists(copy)
    if finished:
        assert moving.here == target
        assert not os.path.exists(f"{target}/t-0/{FINISHED}")
    assert moving.read() == (list(range(500)) if finished else [])


def test_a_copy_with_more_than_its_log_is_cut_where_they_agree(moving):
    moving.write(3000)
    target = moving.elsewhere
    moving.limit(0)
    assert moving.move(target) is ErrorCode.NONE
    until(lambda: moving.where()[target] == [(True, True)])
    moving.broker.kill()
    # As after a loss of power: the log's last records did not reach the disk, those of the copy did.
    (copy,) = Path(target).glob("t-0.*-future")
    for name in os.listdir(f"{moving.here}/t-0"):
        if name.endswith(".log"):
            (copy / name).write_bytes(Path(moving.here, "t-0", name).read_bytes())
    last = max(Path(moving.here, "t-0").glob("*.log"))
    os.truncate(last, last.stat().st_size // 2)
    moving.broker.start()
    kept = len(moving.read())
    assert 0 < kept < 3000
    moving.write(100, kept)
    moving.limit(None)
    until(lambda: moving.arrived(target))
    assert moving.read() == list(range(kept + 100))


def test_a_cordoned_directory_takes_no_new_replicas_and_keeps_those_it_has(moving):
    cordoned, other = moving.here, moving.elsewhere

    def shown():
        results = moving.call(DescribeLogDirsRequest(None), 5).results
        return {result.log_dir: result.is_cordoned for result in results}

    moving.set("cordoned.log.dirs", cordoned)
    until(lambda: shown() == {cordoned: True, other: False})
    for number in range(3):
        create_topic(moving.broker.bootstrap, f"new-{number}")
    assert {name for name in os.listdir(other) if name.startswith("new-")} == {
        "new-0-0",
        "new-1-0",
        "new-2-0",
    }
    assert moving.move(cordoned, "new-0") is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    moving.write(10)
    assert moving.read() == list(range(10))
    moving.set("cordoned.log.dirs", "*")
    until(lambda: shown() == {cordoned: True, other: True})

    def refused() -> str:
        try:
            create_topic(moving.broker.bootstrap, unique_name())
        except ValueError as error:
            return str(error)
        return ""

    until(lambda: "all their log directories cordoned" in refused())
    moving.set("cordoned.log.dirs", None)
    until(lambda: not refused())
