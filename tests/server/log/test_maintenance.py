"""The background work happens when it is due, waits for disks in threads, and survives failures."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.server.log.checkpoints import HIGH_WATERMARK, LOG_START, RECOVERY_POINT, read_checkpoint
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import FileHandle, Files
from headrace.server.log.flusher import GroupFlusher
from headrace.server.log.maintenance import LogMaintenance
from headrace.server.log.manager import LogManager
from headrace.wire.errors import ErrorCode, KafkaError


class WatchedFiles(Files):
    """Counts syncs, notes in which threads they happen, and can hold or fail them."""

    __slots__ = ("failing", "full", "gate", "synced", "syncing", "threads")

    def __init__(self):
        self.synced = []
        self.syncing = threading.Event()
        self.threads = set()
        self.gate = None
        self.failing = False
        self.full = False

    def open(self, path, *, writable=False, create=False):
        plain = super().open(path, writable=writable, create=create)
        handle = WatchedHandle(os.dup(plain.fd), path, writable)
        handle.files = self
        return handle


class WatchedHandle(FileHandle):
    __slots__ = ("files",)

    def write_at(self, data, position):
        if self.files.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        super().write_at(data, position)

    def sync(self):
        self.files.synced.append(os.path.basename(self.path))
        self.files.syncing.set()
        self.files.threads.add(threading.get_ident())
        if self.files.gate is not None:
            assert self.files.gate.wait(30)
        if self.files.failing:
            raise OSError(errno.EIO, "Input/output error", self.path)
        super().sync()


@pytest.fixture
def files():
    return WatchedFiles()


@pytest.fixture
def maintenance(tmp_path, clock, files):
    manager = LogManager([str(tmp_path / "data")], environment=Environment(clock=clock, files=files))
    manager.open()
    with ThreadPoolExecutor(4) as executor:
        yield LogMaintenance(manager, GroupFlusher(executor), executor)
        if files.gate is not None:
            files.gate.set()
    manager.release()


async def test_many_waiters_share_one_fsync_and_it_runs_in_a_thread(maintenance, files, lab):
    log = maintenance.manager.create("t", 0, LogConfig(flush_messages=1))
    files.gate = threading.Event()
    waiters = []
    for number in range(20):
        result = log.append_as_leader(lab.batch(b"%d" % number), leader_epoch=0)
        assert log.must_flush
        waiters.append(maintenance.flusher.flush_through(log, result.last_offset + 1))
    files.synced.clear()
    files.gate.set()
    await asyncio.gather(*waiters)
    assert log.recovery_point == 20
    assert files.synced.count(f"{0:020d}.log") <= 2
    assert threading.get_ident() not in files.threads
    assert maintenance.flusher.flush_through(log, 20).done()


async def test_a_failed_fsync_fails_every_waiter_and_the_log_returns_when_the_disk_does(
    maintenance, files, lab
):
    log = maintenance.manager.create("t", 0, LogConfig())
    lab.append(log, b"a")
    files.failing = True
    waiters = [maintenance.flusher.flush_through(log, 1) for _ in range(3)]
    for waiter in waiters:
        with pytest.raises(KafkaError) as caught:
            await waiter
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        await maintenance.flusher.flush_through(log, 1)
    files.failing = False
    await maintenance.retry_offline()
    assert log.offline_reason is None
    assert lab.append(log, b"b") == 1
    await maintenance.flusher.flush_through(log, 2)


async def test_a_flush_for_which_no_thread_can_be_started_is_refused_and_the_next_one_works(maintenance, lab):
    log = maintenance.manager.create("t", 0, LogConfig())
    lab.append(log, b"a")

    class Crowded(ThreadPoolExecutor):
        full = True

        def submit(self, *arguments):
            if self.full:
                raise RuntimeError("can't start new thread")
            return super().submit(*arguments)

    with Crowded(1) as executor:
        flusher = GroupFlusher(executor)
        with pytest.raises(KafkaError) as caught:
            await flusher.flush_through(log, 1)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        executor.full = False
        await asyncio.wait_for(flusher.flush_through(log, 1), 30)
    assert log.recovery_point == 1


async def test_flush_ms_brings_a_log_to_the_disk_in_time(maintenance, lab, clock):
    log = maintenance.manager.create("t", 0, LogConfig(flush_ms=1000))
    lazy = maintenance.manager.create("lazy", 0, LogConfig())
    lab.append(log, b"a")
    lab.append(lazy, b"a")
    clock.advance(999)
    await maintenance.flush_due()
    assert log.recovery_point == 0
    clock.advance(1)
    await maintenance.flush_due()
    assert log.recovery_point == 1
    assert lazy.recovery_point == 0


async def test_a_finished_segment_is_brought_to_the_disk(maintenance, files, lab):
    log = maintenance.manager.create("t", 0, LogConfig(segment_bytes=100))
    lab.append(log, b"a" * 30)
    lab.append(log, b"b" * 30)
    await maintenance.flush_due()
    assert f"{0:020d}.timeindex" in files.synced
    assert log.recovery_point == 2
    files.synced.clear()
    await maintenance.flush_due()
    assert files.synced == []


async def test_retention_and_the_waste_basket(maintenance, lab, clock):
    manager = maintenance.manager
    log = manager.create("t", 0, LogConfig(segment_bytes=100, retention_ms=1000, file_delete_delay_ms=500))
    for _ in range(3):
        lab.append(log, b"a" * 30)
    log.set_high_watermark(3)
    clock.advance(1001)
    await maintenance.apply_retention()
    assert log.log_start_offset == 3
    assert any(name.endswith(".deleted") for name in os.listdir(log.directory))
    await maintenance.empty_trash()
    assert any(name.endswith(".deleted") for name in os.listdir(log.directory))
    manager.delete("t", 0)
    clock.advance(500)
    await maintenance.empty_trash()
    assert not any(entry.is_dir() for entry in os.scandir(manager.directories[0].path))


async def test_checkpoints_say_where_logs_stand(maintenance, files, lab):
    manager = maintenance.manager
    log = manager.create("t", 0, LogConfig())
    for _ in range(5):
        lab.append(log, b"a")
    log.set_high_watermark(4)
    log.delete_records(2)
    log.flush()
    lab.append(log, b"a")
    await maintenance.checkpoint_recovery_points()
    await maintenance.checkpoint_log_starts()
    await maintenance.checkpoint_high_watermarks()
    path = manager.directories[0].path
    read = {name: read_checkpoint(files, path, name) for name in (RECOVERY_POINT, LOG_START, HIGH_WATERMARK)}
    assert read == {RECOVERY_POINT: {("t", 0): 6}, LOG_START: {("t", 0): 2}, HIGH_WATERMARK: {("t", 0): 4}}
    files.synced.clear()
    await maintenance.checkpoint_high_watermarks()
    assert files.synced == [], "nothing has changed"


async def test_a_checkpoint_that_cannot_be_written_takes_the_directory_offline_until_it_works(
    maintenance, files, lab
):
    manager = maintenance.manager
    log = manager.create("t", 0, LogConfig())
    lab.append(log, b"a")
    log.set_high_watermark(1)
    files.failing = True
    await maintenance.checkpoint_high_watermarks()
    assert manager.online_directories == []
    with pytest.raises(KafkaError):
        lab.append(log, b"b")
    await maintenance.retry_offline()
    assert manager.online_directories == []
    files.failing = False
    await maintenance.retry_offline()
    assert lab.append(log, b"b") == 1


async def test_on_a_full_disk_checkpoints_wait_and_everything_can_still_be_read(
    maintenance, files, lab, caplog
):
    manager = maintenance.manager
    log = manager.create("t", 0, LogConfig())
    lab.append(log, b"a")
    log.flush()
    lab.append(log, b"b")
    log.set_high_watermark(2)
    files.full = True
    for checkpoint in (
        maintenance.checkpoint_high_watermarks,
        maintenance.checkpoint_recovery_points,
        maintenance.checkpoint_log_starts,
    ):
        await checkpoint()
    with pytest.raises(KafkaError, match="No room is left"):
        lab.append(log, b"refused")
    assert lab.values(log) == [b"a", b"b"]
    assert caplog.text.count("No room is left") == 1
    files.full = False
    assert lab.append(log, b"c") == 2
    await maintenance.checkpoint_high_watermarks()
    path = manager.directories[0].path
    assert read_checkpoint(files, path, HIGH_WATERMARK) == {("t", 0): 2}


@pytest.mark.parametrize("segment_bytes", [100, 1_000_000], ids=["many segments", "only the active one"])
async def test_retention_makes_room_on_a_full_disk(maintenance, files, lab, clock, segment_bytes):
    log = maintenance.manager.create(
        "t", 0, LogConfig(segment_bytes=segment_bytes, retention_ms=1000, file_delete_delay_ms=0)
    )
    for epoch in range(4):
        lab.append(log, b"a" * 30, leader_epoch=epoch)
    log.set_high_watermark(4)
    clock.advance(1001)
    files.full = True
    await maintenance.apply_retention()
    assert log.log_start_offset == log.log_end_offset == 4
    await maintenance.empty_trash()
    assert sum(files.list(log.directory).values()) < 100, "what is left holds no records"
    files.full = False
    assert lab.append(log, b"b", leader_epoch=4) == 4
    assert lab.values(log) == [b"b"]


async def test_everything_happens_on_the_clock(maintenance, lab, clock):
    manager = maintenance.manager
    log = manager.create("t", 0, LogConfig(flush_ms=50, retention_ms=1000))
    running = asyncio.create_task(maintenance.run())
    await asyncio.sleep(0)
    lab.append(log, b"a")
    log.set_high_watermark(1)

    async def until(condition):
        for _ in range(2000):
            if condition():
                return
            clock.advance(50)
            await asyncio.sleep(0.001)
        raise AssertionError("it never happened")

    await until(lambda: log.recovery_point == 1)
    await until(
        lambda: read_checkpoint(Files(), manager.directories[0].path, HIGH_WATERMARK) == {("t", 0): 1}
    )
    clock.advance(400_000)
    await until(lambda: log.log_start_offset == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("work", ["flush_due", "checkpoint_recovery_points"])
async def test_a_log_that_is_deleted_while_it_is_flushed_is_no_error(maintenance, files, lab, caplog, work):
    log = maintenance.manager.create("t", 0, LogConfig(flush_ms=0))
    lab.append(log, b"a")
    await maintenance.flusher.flush_through(log, 1)
    lab.append(log, b"b")
    files.syncing.clear()
    files.gate = threading.Event()
    running = asyncio.create_task(getattr(maintenance, work)())
    assert await asyncio.to_thread(files.syncing.wait, 60)
    maintenance.manager.delete("t", 0)
    files.gate.set()
    await running
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_a_log_that_is_deleted_while_others_come_back_stays_away(maintenance, files, lab):
    first, second = (maintenance.manager.create("t", number, LogConfig()) for number in range(2))
    for log in (first, second):
        lab.append(log, b"a")
        log.take_offline("the test says so")

    class Deleting:
        def reopening(self, log):
            if log is first:
                maintenance.manager.delete("t", 1)
            return True

        def reopened(self, log):
            pass

    observed = LogMaintenance(
        maintenance.manager, maintenance.flusher, maintenance._executor, observer=Deleting()
    )
    await observed.retry_offline()
    assert first.offline_reason is None
    assert second.offline_reason is not None
