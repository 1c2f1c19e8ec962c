"""A broker that stops waits for its threads: files are closed, and marked as such, by one writer."""

from __future__ import annotations

import os
import threading

from confluent_kafka import Producer

from headrace.server.identity import BROKER_EPOCH, note_registration
from headrace.server.log.checkpoints import RECOVERY_POINT
from headrace.server.log.directory import CLEAN_STOP, META
from headrace.server.log.environment import Environment
from headrace.server.log.files import FileHandle, Files
from headrace.server.log.manager import LogManager
from headrace.testing.broker import BrokerThread
from headrace.testing.disk import FaultyFiles

PATIENCE = 3
"""Seconds that a held thread gives the other to come; where only one may write, it does not come."""


class HeldFiles(FaultyFiles):
    """Two threads that write the same file meet before either renames it, and the first to come renames it first."""

    __slots__ = ("first", "meeting", "name", "reached", "renamed")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.first: int | None = None
        self.meeting: threading.Event | None = None
        self.reached = threading.Event()
        self.renamed = threading.Event()

    def open(self, path, *, writable=False, create=False):
        plain = Files.open(self, path, writable=writable, create=create)
        handle = HeldHandle(os.dup(plain.fd), path, writable)
        handle.files = self
        return handle

    def meet(self, path: str) -> None:
        if self.meeting is None or os.path.basename(path) != self.name + ".tmp":
            return
        if self.first is None:
            self.first = threading.get_ident()
            self.reached.set()
            self.meeting.wait(PATIENCE)
        elif self.first != threading.get_ident():
            self.meeting.set()
            assert self.renamed.wait(60)

    def rename(self, source, target):
        super().rename(source, target)
        if self.first == threading.get_ident() and os.path.basename(target) == self.name:
            self.renamed.set()


class HeldHandle(FileHandle):
    __slots__ = ("files",)

    def sync(self):
        self.files.meet(self.path)
        super().sync()


def test_a_checkpoint_that_is_being_written_does_not_spoil_a_clean_stop(tmp_path):
    files = HeldFiles(RECOVERY_POINT)
    settings = {"log.flush.offset.checkpoint.interval.ms": "20"}
    broker = BrokerThread(tmp_path / "data", settings=settings, files=files).start()
    topic = broker.create_topic(config={"flush.messages": "1"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    files.meeting = threading.Event()
    producer.produce(topic, b"v")
    assert producer.flush(30) == 0
    assert files.reached.wait(60)
    broker.stop()
    assert (broker.data / CLEAN_STOP).exists()


def test_two_registrations_in_a_row_leave_the_newer_epoch(tmp_path, caplog):
    files = HeldFiles(META)
    logs = LogManager([str(tmp_path)], environment=Environment(files))
    logs.open()
    logs.directories[0].write_meta({"node.id": "1"})
    files.meeting = threading.Event()
    epoch = 7
    older = threading.Thread(target=note_registration, args=(logs, lambda: epoch))
    older.start()
    assert files.reached.wait(60)
    epoch = 8
    newer = threading.Thread(target=note_registration, args=(logs, lambda: epoch))
    newer.start()
    older.join(60)
    newer.join(60)
    assert logs.directories[0].read_meta() == {"node.id": "1", BROKER_EPOCH: "8"}
    assert caplog.messages == []
    logs.release()
