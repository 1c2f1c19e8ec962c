"""A clean stop creates no unnecessary files, and loses nothing by it."""

from __future__ import annotations

import errno
import os

import pytest

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import AppendOrigin
from headrace.wire.batch import ASSIGNMENT, LENGTH_OVERHEAD
from headrace.wire.markers import build_end_transaction_marker


class CountingFiles(Files):
    """Knows which files were made; while it is full an empty one can be made, and nothing that would fill it."""

    __slots__ = ("full", "made")

    def __init__(self):
        self.made = []
        self.full = False

    def open(self, path, *, writable=False, create=False):
        if create and not os.path.exists(path):
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            self.made.append(os.path.basename(path))
        return super().open(path, writable=writable, create=create)

    def create(self, path):
        self.made.append(os.path.basename(path))
        super().create(path)


@pytest.fixture
def files():
    return CountingFiles()


@pytest.fixture
def start(tmp_path, clock, files):
    running = []

    def factory():
        manager = LogManager([str(tmp_path / "data")], environment=Environment(clock=clock, files=files))
        manager.open()
        running.append(manager)
        return manager

    yield factory
    for manager in running:
        manager.release()


def test_a_log_with_a_few_records_costs_no_new_file_and_is_whole_afterwards(start, files, lab, clock):
    manager = start()
    log = manager.create("t", 0, LogConfig())
    for number in range(5):
        lab.append(log, b"%d" % number)
        clock.advance(10)
    files.made.clear()
    manager.close()
    assert [name for name in files.made if name.startswith("0")] == []
    for _ in range(2):
        manager = start()
        log = manager.get("t", 0)
        assert lab.values(log) == [b"0", b"1", b"2", b"3", b"4"]
        assert log.offset_for_timestamp(clock.now_ms() - 20).offset == 3
        assert log.max_timestamp_offset().offset == 4
        manager.close()


def test_a_log_that_fills_its_index_keeps_it_and_is_not_read_again(start, files, lab):
    manager = start()
    log = manager.create("t", 0, LogConfig())
    for _ in range(10):
        lab.append(log, b"v" * 3000)
    manager.close()
    assert {".index", ".timeindex", ".snapshot"} <= {
        os.path.splitext(name)[1] for name in os.listdir(log.directory)
    }
    manager = start()
    files.made.clear()
    assert len(lab.values(manager.get("t", 0))) == 10
    assert files.made == []


@pytest.mark.parametrize("deleted", [False, True], ids=["there", "deleted"])
def test_what_a_producer_last_wrote_is_known_after_a_stop_of_a_small_log(start, lab, deleted):
    manager = start()
    log = manager.create("t", 0, LogConfig())
    lab.append(log, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    if deleted:
        log.set_high_watermark(1)
        log.delete_records(1)
    manager.close()
    log = start().get("t", 0)
    again = lab.append(log, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    assert again == 0
    assert log.log_end_offset == 1, "it is a repetition"


def test_transactions_are_known_once_each_after_a_stop_of_a_small_log(start, lab, clock):
    manager = start()
    log = manager.create("t", 0, LogConfig())
    for producer_id in (1, 2):
        lab.append(log, b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    marker = build_end_transaction_marker(
        producer_id=1, producer_epoch=0, coordinator_epoch=0, committed=False, timestamp=clock.now_ms()
    )
    log.append_as_leader(memoryview(marker), leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    for _ in range(2):
        manager.close()
        manager = start()
        log = manager.get("t", 0)
        log.set_high_watermark(3)
        assert [aborted.producer_id for aborted in log.aborted_transactions(0, 3)] == [1]
        assert log.last_stable_offset == 1, "the other one is still open"


def test_producers_are_known_after_a_stop_though_retention_emptied_the_log_on_a_full_disk(
    start, files, lab, clock
):
    manager = start()
    log = manager.create("t", 0, LogConfig(retention_ms=1000))
    lab.append(log, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    log.set_high_watermark(1)
    clock.advance(5000)
    files.full = True
    assert log.delete_old_segments() == 1
    files.full = False
    manager.close()
    log = start().get("t", 0)
    again = lab.append(log, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    assert again == 0
    assert log.log_end_offset == 1, "it is a repetition"


def test_a_small_log_can_be_read_and_emptied_when_it_is_first_used_on_a_full_disk(start, files, lab, clock):
    manager = start()
    log = manager.create("t", 0, LogConfig())
    for number in range(3):
        lab.append(log, b"%d" % number)
    log.set_high_watermark(3)
    manager.close()
    log = start().get("t", 0)
    files.full = True
    assert lab.values(log) == [b"0", b"1", b"2"]
    assert log.offset_for_timestamp(clock.now_ms()).offset == 0
    log.update_config(LogConfig(retention_ms=1000))
    clock.advance(5000)
    assert log.delete_old_segments() == 1
    files.full = False
    assert lab.append(log, b"3") == 3
    assert lab.values(log) == [b"3"]


def test_an_epoch_of_which_no_record_was_written_does_not_keep_a_full_disk_from_being_read(start, files, lab):
    manager = start()
    log = manager.create("t", 0, LogConfig())
    lab.append(log, b"a", leader_epoch=5)
    log.set_high_watermark(1)
    log.load().epochs.assign(6, 1)  # like an append that finds no room for its records afterwards
    manager.close()
    manager = start()
    log = manager.get("t", 0)
    files.full = True
    assert lab.values(log) == [b"a"]
    assert log.latest_epoch == 5
    files.full = False
    batch = lab.batch(b"b")
    ASSIGNMENT.pack_into(batch, 0, 1, len(batch) - LENGTH_OVERHEAD, 5)
    log.append_as_follower(batch)
    manager.close()
    log = start().get("t", 0)
    log.load()
    assert log.load().epochs.entries == [(5, 0)]
