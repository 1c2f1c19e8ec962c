"""An error that passes (no descriptor, no memory, no room for a moment) leaves a log as it was, and the log stays usable."""

from __future__ import annotations

import contextlib
import errno
import os

import pytest

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import FileHandle, Files, HandlePool, HandleSlot
from headrace.server.log.index import offset_index
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError


class PassingHandle(FileHandle):
    __slots__ = ("files",)

    def write_at(self, data, position):
        if self.files.torn is not None and self.path.endswith(self.files.torn):
            super().write_at(memoryview(data)[: len(data) * 2 // 3], position)
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), self.path)
        super().write_at(data, position)


class PassingFiles(Files):
    """Cannot open what ends with `closed`, rename what ends with `fixed`, or write all of what ends with `torn`."""

    __slots__ = ("closed", "fixed", "torn")

    def __init__(self):
        self.heal()

    def heal(self):
        self.closed = self.fixed = self.torn = None

    def open(self, path, *, writable=False, create=False):
        if self.closed is not None and path.endswith(self.closed):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        plain = super().open(path, writable=writable, create=create)
        handle = PassingHandle(os.dup(plain.fd), path, writable)
        handle.files = self
        return handle

    def rename(self, source, target):
        if self.fixed is not None and source.endswith(self.fixed):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source)
        super().rename(source, target)


@pytest.fixture
def files(lab, clock):
    files = PassingFiles()
    # With one open file allowed, each log has to reopen its file all the time.
    lab.environment = Environment(files=files, clock=clock, pool=HandlePool(1))
    return files


def grow(lab, log, count=10):
    for number in range(count):
        lab.append(log, b"%d" % number + b"v" * 3000)
        lab.clock.advance(10)


def reopened(lab, files):
    """A log with entries in its indexes, opened again after a clean stop and not used yet."""
    log = lab.open()
    grow(lab, log)
    log = lab.open(log.close())
    log.load()
    other = lab.open(name="other")
    lab.append(other, b"takes the only place for an open file")
    return log


def offsets(log):
    return [header.base_offset for _, header in log.load().active.headers(0)]


@pytest.mark.parametrize("follower", [False, True], ids=["leader", "follower"])
@pytest.mark.parametrize("closed", [".timeindex", "index", ".log"])
def test_no_offset_is_given_twice_when_descriptors_run_out_at_the_first_append(lab, files, closed, follower):
    log = reopened(lab, files)
    leader = lab.open(name="leader")
    leader.load()
    leader.truncate_fully_and_start_at(10)
    for value in (b"a", b"b", b"c"):
        lab.append(leader, value)
    blobs = [leader.read(offset, 1).read() for offset in (10, 11, 12)]

    def append(number):
        if follower:
            log.append_as_follower(memoryview(bytearray(blobs[number])))
        else:
            lab.append(log, [b"a", b"b", b"c"][number])

    files.closed = closed
    with contextlib.suppress(KafkaError):
        append(0)
    files.heal()
    assert log.offline_reason is None
    for number in range(log.log_end_offset - 10, 3):
        append(number)
    assert offsets(log) == list(range(13))
    log.load().release()
    again = lab.open(ReopenFacts())
    assert lab.values(again, 10) == [b"a", b"b", b"c"], "nothing is missing after a crash"


@pytest.mark.parametrize("follower", [False, True], ids=["leader", "follower"])
def test_a_write_cut_short_for_want_of_memory_leaves_nothing_behind(lab, files, follower):
    log = lab.open()
    lab.append(log, b"a")
    size = log.size
    leader = lab.open(name="leader")
    for value in (b"a", b"b" * 100):
        lab.append(leader, value)
    blob = memoryview(bytearray(leader.read(1, 1).read()))
    files.torn = "t-0/" + f"{0:020d}.log"
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(blob) if follower else lab.append(log, b"b" * 100)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    files.heal()
    assert os.path.getsize(log.load().active.path(".log")) == size
    log = lab.open(log.close())
    assert lab.values(log) == [b"a"]
    assert lab.append(log, b"c") == 1


def test_segments_that_cannot_be_renamed_yet_go_with_the_next_retention(lab, files):
    log = lab.open(segment_bytes=100, retention_ms=1000)
    for number in range(4):
        lab.append(log, b"%d" % number * 30)
    log.set_high_watermark(4)
    lab.clock.advance(5000)
    lab.append(log, b"new" * 10)
    files.fixed = f"{1:020d}.log"
    with pytest.raises(KafkaError):
        log.delete_old_segments()
    assert lab.values(log) == [b"new" * 10], "what the log starts with can be read"
    assert f"{1:020d}.log" in os.listdir(log.directory)
    files.heal()
    assert log.delete_old_segments() == 3
    assert [name for name in os.listdir(log.directory) if name.endswith(".log")] == [f"{4:020d}.log"]
    assert lab.values(log) == [b"new" * 10]


def test_retention_that_cannot_rename_the_only_segment_leaves_the_log_usable(lab, files):
    log = lab.open(retention_ms=1000)
    lab.append(log, b"old")
    log.set_high_watermark(1)
    lab.clock.advance(5000)
    files.fixed = f"{0:020d}.log"
    with pytest.raises(KafkaError):
        log.delete_old_segments()
    assert lab.values(log) == [b"old"]
    assert lab.append(log, b"new") == 1
    files.heal()
    log.delete_old_segments()
    assert lab.values(log) == [b"new"]


def test_an_index_holds_nothing_of_a_failed_write_after_a_truncation(lab, files):
    path = str(lab.path / "0.index")
    index = offset_index(files, lab.environment.pool, path, 0)
    entries = [(number * 10, number * 1000) for number in range(1, 10)]
    for entry in entries[:3]:
        index.append(*entry)
    index.write()
    for entry in entries[3:]:
        index.append(*entry)
    files.torn = ".index"
    with pytest.raises(OSError, match="memory"):
        index.write()
    files.heal()
    index.truncate(4)
    index.write()
    found = offset_index(files, lab.environment.pool, path, os.path.getsize(path))
    assert [found.entry(number) for number in range(found.count)] == entries[:4]


def test_a_log_that_cannot_be_opened_at_a_start_is_offline_until_its_end_is_known(
    lab, files, clock, tmp_path
):
    manager = LogManager([str(tmp_path / "data")], environment=Environment(clock=clock))
    manager.open()
    log = manager.create("t", 0, LogConfig())
    grow(lab, log)
    log.load().release()
    manager.release()
    files.closed = f"{0:020d}.log"
    manager = LogManager([str(tmp_path / "data")], environment=lab.environment)
    manager.open()
    log = manager.get("t", 0)
    assert log.offline_reason is not None, "a leader's term would begin at an end that nobody knows"
    files.heal()
    manager.bring_back(log)
    assert log.log_end_offset == 10
    manager.release()


def test_a_file_that_was_closed_and_opened_again_counts_once_among_the_open_files(tmp_path):
    pool, files = HandlePool(2), Files()
    path = str(tmp_path / "file")
    files.create(path)
    often, once = HandleSlot(), HandleSlot()
    for _ in range(2):
        pool.empty(often)
        pool.fill(often, files.open(path))
    pool.fill(once, files.open(path))
    assert often.handle is not None
    assert once.handle is not None
