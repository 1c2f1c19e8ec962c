"""Threads that read cold data see a consistent log while the loop appends, rolls, removes and compacts."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.server.log.cleaner import LogCleaner
from headrace.server.log.cleaner_process import clean
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import FileHandle, Files
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import AppendOrigin
from headrace.wire.batch import iterate_batches, parse_header
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.records import decode_records


@pytest.fixture
def _frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_frequent_switches")
def test_reads_in_threads_return_the_records_asked_for_whatever_the_loop_does(lab):
    log = lab.open(
        segment_bytes=8000, index_interval_bytes=100, retention_bytes=40_000, file_delete_delay_ms=0
    )
    lab.append(log, b"0")
    log.set_high_watermark(1)
    stop = threading.Event()
    problems: list[BaseException] = []
    slices = [0, 0]

    def read(number: int) -> None:
        chance = random.Random(number)
        try:
            while not stop.is_set():
                low, high = log.log_start_offset, log.log_end_offset
                offset = chance.randrange(low, high) if chance.random() < 0.7 else high - 1
                try:
                    piece = log.read(offset, chance.choice([1, 500, 5000]))
                except KafkaError as error:
                    if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                        raise
                    continue
                data = memoryview(piece.read())
                expected = None
                for position, header in iterate_batches(data):
                    if expected is None:
                        assert header.base_offset <= offset <= header.last_offset
                    else:
                        assert header.base_offset == expected
                    expected = header.next_offset
                    for record in decode_records(data[position : position + header.size], header):
                        assert record.value.startswith(b"%d" % record.offset)
                assert expected is not None
                slices[number] += 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    chance = random.Random(9)
    try:
        for step in range(4000):
            count = chance.randrange(1, 4)
            end = log.log_end_offset
            lab.append(log, *(b"%d " % (end + i) + b"x" * chance.randrange(60) for i in range(count)))
            log.set_high_watermark(log.log_end_offset)
            if step % 40 == 0:
                log.delete_old_segments()
                for path in lab.environment.trash.take_due(lab.clock.now_ms()):
                    lab.environment.files.remove(path)
            if step % 100 == 0:
                log.flush()
            if problems:
                break
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not problems, problems[0]
    assert min(slices) > 10
    assert log.offline_reason is None


class WatchedFiles(Files):
    """Calls a test before a file is opened, when that was tried, and after a file has got another name."""

    __slots__ = ("before_open", "renamed", "tried_to_open")

    def __init__(self) -> None:
        self.before_open: Callable[[str], object] = lambda path: None
        self.tried_to_open: Callable[[], object] = lambda: None
        self.renamed: Callable[[str, str], object] = lambda source, target: None

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> FileHandle:
        self.before_open(path)
        try:
            return super().open(path, writable=writable, create=create)
        finally:
            self.tried_to_open()

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.renamed(source, target)


@pytest.fixture
def compacted(tmp_path, clock, lab):
    """A log with every key twice, the cleaner that would compact it, and its files."""
    config = LogConfig(
        cleanup_policy=("compact",),
        segment_bytes=6000,
        index_interval_bytes=100,
        min_cleanable_dirty_ratio=0.0,
    )
    files = WatchedFiles()
    manager = LogManager([str(tmp_path)], environment=Environment(clock=clock, files=files))
    manager.open()
    log = manager.create("t", 0, config)
    for number in range(400):
        lab.append(log, b"v" * 50, key=b"k%d" % (number % 200 if number % 20 else number))
    log.set_high_watermark(log.log_end_offset)
    log.roll()

    async def here(task):
        for answer in clean(Environment(clock=clock), task):
            yield answer

    with ThreadPoolExecutor(1) as disk:
        yield log, LogCleaner(manager, disk, worker=here), files
    manager.release()


@pytest.mark.parametrize("kind", [".log", ".index", ".timeindex"])
@pytest.mark.parametrize("suffix", [".deleted", ""])
async def test_a_read_in_a_thread_succeeds_at_any_moment_of_a_swap(compacted, kind, suffix):
    """The moment is when a file of an old segment (.deleted) or of the new one has just got its name."""
    log, cleaner, files = compacted
    met = threading.Event()
    found: list[int] = []

    def read() -> None:
        found.append(parse_header(log.read(30, 1).read()).base_offset)

    reader = threading.Thread(target=read)

    def read_meanwhile(source: str, target: str) -> None:
        if os.path.basename(target) == f"{0:020d}{kind}{suffix}":
            log.load().release()  # So that the reader opens every file it needs.
            files.tried_to_open = lambda: met.set() if threading.current_thread() is reader else None
            reader.start()
            assert met.wait(30), "the loop goes on when the reader has met the files as they are now"

    files.renamed = read_meanwhile
    assert await cleaner.clean_one()
    reader.join(30)
    assert log.offline_reason is None
    assert found == [log.read(30, 1).first_offset]


async def test_a_reader_that_is_overtaken_by_a_swap_does_not_take_the_new_file_for_the_old(compacted):
    log, cleaner, files = compacted
    offset = log.load().segments[1].base_offset - 1
    log.load().release()
    reached, go = threading.Event(), threading.Event()
    found: list[int] = []

    def read() -> None:
        found.append(parse_header(log.read(offset, 1).read()).base_offset)

    reader = threading.Thread(target=read)

    def wait(path: str) -> None:
        if threading.current_thread() is reader and path.endswith(".log"):
            reached.set()
            assert go.wait(60)

    files.before_open = wait
    reader.start()
    assert reached.wait(30)
    assert await cleaner.clean_one()
    go.set()
    reader.join(30)
    assert found == [log.read(offset, 1).first_offset]
    assert found[0] > offset, "the record is not there any more"
    assert log.offline_reason is None


class HeldHandle(FileHandle):
    __slots__ = ("files",)

    def read_at(self, size, position, *, nowait=False):
        data = super().read_at(size, position, nowait=nowait)
        self.files.hold(self.path)
        return data


class HeldFiles(Files):
    """A thread that has read from a file whose name ends with `held` waits there until it is let go."""

    __slots__ = ("_loop", "entered", "go_on", "held")

    def __init__(self):
        self._loop = threading.get_ident()
        self.held = None
        self.entered, self.go_on = threading.Event(), threading.Event()

    def open(self, path, *, writable=False, create=False):
        plain = super().open(path, writable=writable, create=create)
        handle = HeldHandle(os.dup(plain.fd), path, writable)
        handle.files = self
        return handle

    def hold(self, path):
        if self.held is not None and path.endswith(self.held) and threading.get_ident() != self._loop:
            self.entered.set()
            assert self.go_on.wait(30)

    def during(self, held, look, change):
        """Do `change` here after a thread that does `look` has read from such a file, or when it has no need to."""
        self.held = held
        thread = threading.Thread(target=look)
        thread.start()
        while thread.is_alive() and not self.entered.wait(0.01):
            pass
        try:
            change()
        finally:
            self.go_on.set()
            thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def held(lab, clock):
    files = HeldFiles()
    lab.environment = Environment(files=files, clock=clock)
    return files


def test_a_lookup_in_a_thread_does_not_undo_the_largest_timestamp_of_an_append(lab, held, clock):
    log = lab.open()
    for _ in range(10):
        lab.append(log, b"v" * 3000)
    log = lab.open(log.close())
    log.load()
    clock.advance(1000)
    held.during(
        ".timeindex",
        look=lambda: log.offset_for_timestamp(clock.now_ms() - 500),
        change=lambda: lab.append(log, b"newest"),
    )
    assert log.max_timestamp_offset().offset == 10
    assert log.offset_for_timestamp(clock.now_ms() - 500).offset == 10


def test_a_read_in_a_thread_does_not_undo_what_the_loop_adds_to_the_aborted_transactions(lab, held, clock):
    log = lab.open()
    log.load()

    def abort(producer_id):
        lab.append(log, b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
        marker = build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            committed=False,
            timestamp=clock.now_ms(),
        )
        log.append_as_leader(memoryview(marker), leader_epoch=0, origin=AppendOrigin.COORDINATOR)

    abort(1)
    log = lab.open(log.close())
    log.load()
    held.during(".txnindex", look=lambda: log.aborted_transactions(0, 2), change=lambda: abort(2))
    abort(3)
    assert [aborted.producer_id for aborted in log.aborted_transactions(0, 6)] == [1, 2, 3]


@pytest.mark.parametrize("kind", [".index", ".log"])
@pytest.mark.parametrize("offset", [0, 2])
def test_a_read_in_a_thread_that_meets_a_truncation_finds_what_is_left(lab, clock, kind, offset):
    files = WatchedFiles()
    lab.environment = Environment(files=files, clock=clock)
    log = lab.open()
    for _ in range(10):
        lab.append(log, b"v" * 3000)
    log = lab.open(log.close())
    log.load().release()
    reached, go = threading.Event(), threading.Event()
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(log.read(8, 1).size))

    def wait(path: str) -> None:
        if threading.current_thread() is reader and path.endswith(kind):
            reached.set()
            assert go.wait(60)

    files.before_open = wait
    reader.start()
    assert reached.wait(30)
    log.truncate_to(offset)
    go.set()
    reader.join(30)
    assert log.offline_reason is None
    assert found == [0]


def test_a_search_in_a_thread_does_not_bring_back_entries_of_an_index_that_was_cut(lab, held):
    log = lab.open()
    for _ in range(10):
        lab.append(log, b"v" * 3000)
    log = lab.open(log.close())
    log.load()

    def take_another_history():
        log.truncate_to(3)
        for _ in range(4):
            lab.append(log, *[b"w" * 2000] * 4)

    held.during(".index", look=lambda: log.read(6, 1), change=take_another_history)
    assert lab.records(log, 5)[0].offset == 5
