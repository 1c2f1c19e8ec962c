"""flush.messages holds on followers too: in sync mode acks=all means on the disk of every replica in sync."""

import os
import threading

import pytest

from headrace.server.log.files import FileHandle, Files
from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from headrace.testing.wire import WireClient, batch
from headrace.wire.errors import ErrorCode
from tests.server.clients import create
from tests.server.requests import produce_request, produced


class GatedFiles(Files):
    """Every fsync of a segment of the topic `synced` waits until the test opens the gate."""

    __slots__ = ("gate", "syncs")

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.syncs = 0

    def open(self, path, *, writable=False, create=False):
        handle = super().open(path, writable=writable, create=create)
        return _GatedHandle(self, handle, path, writable)


class _GatedHandle(FileHandle):
    __slots__ = ("_files",)

    def __init__(self, files, opened, path, writable):
        super().__init__(os.dup(opened.fd), path, writable)
        self._files = files

    def sync(self):
        if "synced-0" in self.path and self.path.endswith(".log"):
            self._files.gate.wait(60)
            self._files.syncs += 1
        super().sync()


@pytest.fixture
def files():
    return GatedFiles()


@pytest.fixture
def cluster(tmp_path, files):
    def make(directory, settings):
        return BrokerThread(directory, settings, files=files if settings["node.id"] == "2" else None)

    running = Cluster(make, tmp_path, 2, {"replica.lag.time.max.ms": "600000"})
    yield running
    files.gate.set()
    running.stop()


def produce(cluster, *values, timeout_ms=30_000):
    with WireClient(cluster[1].bootstrap, timeout=60) as client:
        return produced(client, produce_request("synced", batch(*values), timeout_ms=timeout_ms))


def test_nothing_is_acknowledged_before_the_follower_has_it_on_its_disk(cluster, files):
    create(cluster.bootstrap, "synced", [1, 2], config={"flush.messages": "1"})
    assert produce(cluster, b"first") is ErrorCode.NONE
    before = files.syncs
    assert before > 0
    files.gate.clear()
    assert produce(cluster, b"second", timeout_ms=1500) is ErrorCode.REQUEST_TIMED_OUT
    files.gate.set()
    assert produce(cluster, b"third") is ErrorCode.NONE
    assert files.syncs > before


def test_with_a_larger_number_the_follower_flushes_as_often_and_nobody_waits(cluster, files):
    create(cluster.bootstrap, "synced", [1, 2], config={"flush.messages": "3"})
    files.gate.clear()
    for value in (b"1", b"2", b"3", b"4"):
        assert produce(cluster, value) is ErrorCode.NONE
    assert files.syncs == 0
    files.gate.set()
    assert produce(cluster, b"5", b"6", b"7") is ErrorCode.NONE

    async def flushed(node):
        (partition,) = [partition for partition in node.replicas if partition.topic == "synced"]
        while partition.log.recovery_point < 3:
            await node.clock.sleep(0.02)
        return partition.log.recovery_point

    assert cluster[2].run(flushed) >= 3
