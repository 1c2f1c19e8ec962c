"""Snapshots of producers are written by the loop, which begins segments, and by flushes in threads, at any time."""

from __future__ import annotations

import os
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.server.log.files import FileHandle, Files
from headrace.server.log.partition import PartitionLog, ReopenFacts
from headrace.server.log.snapshots import read_snapshot, snapshot_path


class HeldFiles(Files):
    """Holds a flush that is about to bring a snapshot to the disk until the test lets it go on."""

    __slots__ = ("go_on", "reached")

    def __init__(self):
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def open(self, path, *, writable=False, create=False):
        plain = super().open(path, writable=writable, create=create)
        handle = HeldHandle(os.dup(plain.fd), path, writable)
        handle.files = self
        return handle


class HeldHandle(FileHandle):
    __slots__ = ("files",)

    def sync(self):
        if ".snapshot" in self.path:
            self.files.reached.set()
            assert self.files.go_on.wait(60)
        super().sync()


@pytest.fixture
def held(lab):
    lab.environment.files = files = HeldFiles()
    yield files
    files.go_on.set()


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def _send(lab, log: PartitionLog, producer_id: int, sequence: int) -> int:
    return lab.append(log, b"v", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


def _flushed_inside_its_segment(lab) -> PartitionLog:
    log = lab.open()
    _send(lab, log, 1, 0)
    log.flush()
    _send(lab, log, 1, 1)
    assert log.wants_snapshot
    return log


def _names(log: PartitionLog) -> set[str]:
    return {name for name in os.listdir(log.directory) if ".snapshot" in name}


def test_a_segment_begins_while_a_flush_writes_the_snapshot_of_the_same_offset(lab, held, executor):
    log = _flushed_inside_its_segment(lab)
    running = executor.submit(log.prepare_flush(snapshot=True).run)
    assert held.reached.wait(60)
    log.roll()
    held.go_on.set()
    assert running.result(60) == 2
    assert log.offline_reason is None
    assert _names(log) == {f"{2:020d}.snapshot"}
    assert [entry.last_sequence for entry in read_snapshot(held, snapshot_path(log.directory, 2))] == [1]
    _send(lab, log, 1, 2)


def test_a_truncation_overtakes_a_flush_and_the_snapshot_of_the_new_records_stays(lab, held, executor):
    log = _flushed_inside_its_segment(lab)
    running = executor.submit(log.prepare_flush(snapshot=True).run)
    assert held.reached.wait(60)
    log.truncate_to(1)
    _send(lab, log, 2, 0)
    log.roll()
    held.go_on.set()
    running.result(60)
    assert _names(log) == {f"{2:020d}.snapshot"}
    known = read_snapshot(held, snapshot_path(log.directory, 2))
    assert {entry.producer_id: entry.last_sequence for entry in known} == {1: 0, 2: 0}


def test_two_flushes_write_the_snapshot_of_one_offset(lab, held, executor):
    log = _flushed_inside_its_segment(lab)
    running = [executor.submit(log.prepare_flush(snapshot=True).run) for _ in range(2)]
    assert held.reached.wait(60)
    held.go_on.set()
    assert [one.result(60) for one in running] == [2, 2]
    assert log.offline_reason is None
    assert _names(log) == {f"{2:020d}.snapshot"}


def test_a_log_that_is_deleted_during_a_flush_does_not_fail(lab, held, executor, caplog):
    log = _flushed_inside_its_segment(lab)
    running = executor.submit(log.prepare_flush(snapshot=True).run)
    assert held.reached.wait(60)
    log.retire_to(log.directory + ".gone", "the partition was deleted")
    held.go_on.set()
    running.result(60)
    assert log.offline_reason == "the partition was deleted"
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("seed", range(4))
def test_flushes_in_threads_never_disturb_segments_that_begin_and_records_that_are_cut(lab, executor, seed):
    """Whatever happens at the same time, the log stays online and a crash brings back the producers it had."""
    chance = random.Random(seed)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        log = lab.open()
        sequences = dict.fromkeys(range(4), 0)
        flushes = []
        for _ in range(600):
            producer_id = chance.randrange(4)
            _send(lab, log, producer_id, sequences[producer_id])
            sequences[producer_id] += 1
            action = chance.random()
            if action < 0.4:
                flushes.append(executor.submit(log.prepare_flush(snapshot=True).run))
            if action < 0.2:
                log.roll()
            elif action > 0.98:
                log.truncate_to(chance.randrange(log.log_start_offset, log.log_end_offset))
                known = {entry.producer_id: entry.last_sequence for entry in log.active_producers}
                sequences = {number: known.get(number, -1) + 1 for number in sequences}
        for flush in flushes:
            flush.result(60)
    finally:
        sys.setswitchinterval(before)
    assert log.offline_reason is None
    assert not [name for name in os.listdir(log.directory) if name.endswith(".tmp")]
    facts = ReopenFacts(recovery_point=log.recovery_point)
    log.load().release()
    again = lab.open(facts)
    again.load()
    assert {entry.producer_id: entry.last_sequence for entry in again.active_producers} == {
        number: sequence - 1 for number, sequence in sequences.items() if sequence
    }
