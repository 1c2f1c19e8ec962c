"""Disks that are full, or will be: real brokers on a volume that says so, and the arithmetic of the forecast."""

import os
import threading
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from headrace.watch.doctor.disks import Stream, seconds_until_full
from headrace.watch.doctor.scene import Bounds
from tests.waiting import until
from tests.watch.doctor.looking import findings


@pytest.fixture
def volume(monkeypatch):
    """The volume as the kernel describes it to the broker, which runs in this process."""
    facts = SimpleNamespace(f_blocks=1_000_000, f_frsize=4096, f_bavail=800_000)
    real = os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda path: facts if os.path.isabs(path) else real(path))
    return facts


def test_a_disk_with_room_is_fine_and_one_without_is_a_warning_then_an_error(make_broker, volume):
    broker = make_broker()
    assert findings("disk-space", broker.bootstrap) == []
    for free, severity in ((100_000, "warning"), (10_000, "error")):
        volume.f_bavail = free
        [(found, sentence, subjects)] = findings("disk-space", broker.bootstrap)
        assert found == severity
        assert f"{free * 4096 / 2**20:.1f} MiB of 3.8 GiB left" in sentence
        assert subjects == (f"{broker.data} of broker 1",)


def test_a_directory_whose_disk_failed_is_an_error(make_broker, tmp_path):
    broker = make_broker({"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"})
    topic = broker.create_topic(partitions=4)
    broker.disk.where, broker.disk.write_error = str(tmp_path / "two"), 5
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 5_000})
    for partition in range(4):
        producer.produce(topic, b"x", partition=partition)
    producer.flush(60)

    def offline():
        return [each for each in findings("disk-space", broker.bootstrap) if "is offline" in each[1]]

    until(offline, "the directory is offline")
    [(severity, _, subjects)] = offline()
    assert (severity, subjects) == ("error", (f"{tmp_path / 'two'} of broker 1",))


def test_a_disk_that_fills_is_forecast_unless_retention_deletes_in_time(make_broker, volume):
    volume.f_bavail = 2_000  # 8 MB
    broker = make_broker()
    topic = broker.create_topic(config={"retention.ms": -1})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    stop = threading.Event()

    def write():
        while not stop.wait(0.01):
            producer.produce(topic, b"x" * 10_000)
            producer.flush(30)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        [(severity, sentence, subjects)] = findings("disk-forecast", broker.bootstrap)
        assert (severity, subjects) == ("error", (f"{broker.data} of broker 1",))
        assert f"most of it in {topic}-0" in sentence
        assert findings("disk-forecast", broker.bootstrap, bounds=Bounds(disk_full_warning=0)) == []
    finally:
        stop.set()
        writer.join()
    assert findings("disk-forecast", broker.bootstrap) == [], "nothing arrives any more"


@pytest.mark.parametrize(
    ("usable", "streams", "seconds"),
    [
        (1000, [Stream(10, None)], 100),
        (1000, [Stream(10, 50)], None),
        (1000, [Stream(10, 100)], 100),
        (1000, [Stream(10, 50), Stream(5, None)], 100),
        (1000, [Stream(10, None, 900)], None),
        (1000, [Stream(10, None, 1100)], 100),
        (1000, [Stream(0, None)], None),
        (1000, [], None),
        (100, [Stream(10, 5), Stream(10, 20)], 7.5 - 2.5 + 0.0),
    ],
)
def test_what_arrives_counts_until_retention_deletes_as_much(usable, streams, seconds):
    assert seconds_until_full(usable, streams) == seconds
