"""A disk that is full, fails, or returns wrong data."""

from __future__ import annotations

import errno
import os

import pytest

from headrace.server.log.environment import Environment
from headrace.server.log.files import FileHandle, Files
from headrace.server.log.partition import ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError


class FaultyHandle(FileHandle):
    __slots__ = ("faults",)

    def write_at(self, data, position):
        self.faults.before_write(self, data, position)
        super().write_at(data, position)

    def sync(self):
        if self.faults.sync_error and self.path.endswith(self.faults.only):
            raise OSError(self.faults.sync_error, os.strerror(self.faults.sync_error), self.path)
        self.faults.synced.append(os.path.basename(self.path))
        super().sync()

    def truncate(self, size):
        if self.faults.truncate_error:
            raise OSError(self.faults.truncate_error, os.strerror(self.faults.truncate_error), self.path)
        super().truncate(size)

    def read_at(self, size, position, *, nowait=False):
        if self.faults.read_error and self.path.endswith(self.faults.only):
            raise OSError(self.faults.read_error, os.strerror(self.faults.read_error), self.path)
        return super().read_at(size, position, nowait=nowait)


class FaultyFiles(Files):
    """A file system that runs out of room or fails on demand."""

    __slots__ = (
        "create_error",
        "only",
        "read_error",
        "room",
        "sync_error",
        "synced",
        "truncate_error",
        "write_error",
    )

    def __init__(self):
        self.room = None
        self.write_error = self.sync_error = self.truncate_error = self.read_error = self.create_error = None
        self.only = ""
        self.synced = []

    def open(self, path, *, writable=False, create=False):
        plain = super().open(path, writable=writable, create=create)
        handle = FaultyHandle(os.dup(plain.fd), path, writable)
        handle.faults = self
        return handle

    def create(self, path):
        if self.create_error:
            raise OSError(self.create_error, os.strerror(self.create_error), path)
        super().create(path)

    def before_write(self, handle, data, position):
        if not handle.path.endswith(self.only):
            return
        if self.write_error:
            raise OSError(self.write_error, os.strerror(self.write_error), handle.path)
        if self.room is not None:
            if self.room < len(data):
                FileHandle.write_at(handle, bytes(data[: self.room]), position)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), handle.path)
            self.room -= len(data)


@pytest.fixture
def faults(lab, clock):
    files = FaultyFiles()
    lab.environment = Environment(files=files, clock=clock)
    return files


def refused(log, lab) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        lab.append(log, b"refused")
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    return caught.value


@pytest.mark.parametrize("room", [0, 1, 30, 60, 68])
def test_a_full_disk_refuses_the_append_and_leaves_the_log_as_it_was(lab, faults, room):
    log = lab.open()
    lab.append(log, b"a")
    path = log.load().active.path(".log")
    size = os.path.getsize(path)
    faults.room = room
    for _ in range(3):
        assert "No room" in refused(log, lab).message
    assert os.path.getsize(path) == size
    assert log.offline_reason is None
    assert lab.values(log) == [b"a"]
    faults.room = None
    assert lab.append(log, b"b") == 1
    assert lab.values(log) == [b"a", b"b"]


def test_a_disk_too_full_for_a_new_segment_refuses_until_there_is_room(lab, faults):
    log = lab.open(segment_bytes=100)
    lab.append(log, b"a" * 30)
    faults.create_error = errno.ENOSPC
    refused(log, lab)
    assert sorted(name for name in os.listdir(log.directory) if name.endswith(".log")) == [f"{0:020d}.log"]
    faults.create_error = None
    assert lab.append(log, b"b" * 30) == 1
    assert lab.values(log) == [b"a" * 30, b"b" * 30]


def test_a_retry_after_a_full_disk_is_not_taken_for_a_duplicate(lab, faults):
    log = lab.open()
    faults.room = 40
    options = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    with pytest.raises(KafkaError):
        lab.append(log, b"a", **options)
    faults.room = None
    result = log.append_as_leader(lab.batch(b"a", **options), leader_epoch=0)
    assert (result.first_offset, result.duplicate) == (0, False)
    assert log.append_as_leader(lab.batch(b"a", **options), leader_epoch=0).duplicate


def test_a_full_disk_refuses_a_followers_append_whole(lab, faults):
    leader = lab.open(name="leader")
    for number in range(5):
        lab.append(leader, b"%d" % number)
    blob = memoryview(bytearray(leader.read(0, 1 << 20).read()))
    follower = lab.open(name="follower")
    follower.load()
    faults.room = len(blob) - 10
    with pytest.raises(KafkaError):
        follower.append_as_follower(blob)
    assert follower.log_end_offset == 0
    faults.room = None
    follower.append_as_follower(blob)
    assert lab.values(follower) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_a_failing_write_takes_the_log_offline_until_it_is_reopened(lab, faults, error):
    log, other = lab.open(), lab.open(name="other")
    lab.append(log, b"a")
    lab.append(other, b"x")
    faults.write_error, faults.only = error, f"t-0/{0:020d}.log"
    assert "offline" in refused(log, lab).message
    with pytest.raises(KafkaError) as caught:
        log.read(0, 100)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert lab.append(other, b"y") == 1
    faults.write_error = None
    refused(log, lab)
    log.reopen()
    assert lab.values(log) == [b"a"]
    assert lab.append(log, b"b") == 1


def test_a_partial_write_that_cannot_be_undone_takes_the_log_offline_and_recovery_cuts_it(lab, faults):
    log = lab.open()
    lab.append(log, b"a")
    faults.room, faults.truncate_error = 20, errno.EIO
    refused(log, lab)
    assert log.offline_reason is not None
    faults.room = faults.truncate_error = None
    log.reopen()
    assert lab.values(log) == [b"a"]
    assert lab.append(log, b"b") == 1


def test_a_failed_fsync_is_never_retried_as_if_nothing_had_happened(lab, faults):
    log = lab.open()
    lab.append(log, b"a")
    assert log.flush() == 1
    lab.append(log, b"b")
    faults.sync_error = errno.EIO
    with pytest.raises(KafkaError) as caught:
        log.flush()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 1
    faults.sync_error = None
    refused(log, lab)
    with pytest.raises(KafkaError):
        log.flush()
    log.reopen()
    assert log.recovery_point == 1
    assert lab.values(log) == [b"a", b"b"]
    assert log.flush() == 2


def test_reopening_while_the_disk_still_fails_leaves_the_log_offline(lab, faults):
    log = lab.open()
    lab.append(log, b"a")
    faults.write_error, faults.only = errno.EIO, ".log"
    refused(log, lab)
    faults.read_error = errno.EIO
    with pytest.raises(KafkaError):
        log.reopen()
    assert log.offline_reason is not None
    faults.read_error = faults.write_error = None
    log.reopen()
    assert lab.append(log, b"b") == 1


def test_a_failing_read_takes_the_log_offline(lab, faults):
    log = lab.open()
    lab.append(log, b"a", b"b")
    lab.append(log, b"c")
    faults.read_error, faults.only = errno.EIO, ".log"
    with pytest.raises(KafkaError) as caught:
        log.read(1, 100)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline_reason is not None


def test_running_out_of_descriptors_does_not_take_the_log_offline(lab, faults):
    log = lab.open()
    lab.append(log, b"a")
    faults.read_error, faults.only = errno.EMFILE, ".log"
    with pytest.raises(KafkaError) as caught:
        log.read(0, 100)
    assert "open files" in caught.value.message
    faults.read_error = None
    assert lab.values(log) == [b"a"]


def test_a_flush_syncs_the_active_log_alone_and_sealed_segments_with_their_indexes(lab, faults):
    log = lab.open(segment_bytes=200, index_interval_bytes=0)
    lab.append(log, b"a" * 30)
    log.flush()
    faults.synced.clear()
    lab.append(log, b"b" * 30)
    log.flush()
    assert faults.synced == [f"{0:020d}.log"]
    lab.append(log, b"c" * 30)
    faults.synced.clear()
    log.flush()
    assert sorted(faults.synced) == sorted(
        [f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex", f"{2:020d}.log"]
    )
    faults.synced.clear()
    log.flush()
    assert faults.synced == []


def test_a_full_disk_while_indexing_loses_no_entry(lab, faults):
    log = lab.open(index_interval_bytes=0)
    faults.room, faults.only = 0, "index"
    for number in range(1500):
        lab.append(log, b"%d" % number)
    assert log.load().active.offset_index.written == 0
    faults.room = None
    assert [record.value for record in lab.records(log, 700)[:3]] == [b"700", b"701", b"702"]
    log.close()
    reopened = lab.open(ReopenFacts(clean=True))
    assert len(lab.values(reopened)) == 1500
    assert reopened.load().active.offset_index.count > 1400


def test_a_full_disk_does_not_keep_a_crashed_log_from_being_read(lab, faults):
    log = lab.open(index_interval_bytes=0)
    for number in range(50):
        lab.append(log, b"%d" % number)
    log.load().release()
    faults.room, faults.only = 0, "index"
    again = lab.open(index_interval_bytes=0)
    assert len(lab.values(again)) == 50
    assert lab.values(again, 40)[0] == b"40"
    faults.room = None
    facts = again.close()
    assert lab.open(facts).load().active.offset_index.count > 40


def test_an_epoch_that_could_not_be_written_is_written_with_the_next_append(lab, faults):
    log = lab.open()
    lab.append(log, b"a", leader_epoch=1)
    faults.room, faults.only = 0, ".tmp"
    with pytest.raises(KafkaError):
        lab.append(log, b"b", leader_epoch=2)
    assert log.latest_epoch == 1
    faults.room = None
    assert lab.append(log, b"b", leader_epoch=2) == 1
    assert lab.open(log.close()).latest_epoch == 2
