"""Compaction keeps the latest of every key and nothing that consumers must not see again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.server.log.cleaner import CleanerSettings, LogCleaner
from headrace.server.log.cleaner_process import clean
from headrace.server.log.cleaner_worker import NICENESS
from headrace.server.log.cleaning_task import CleaningEnd
from headrace.server.log.compaction import BYTES_PER_KEY, BatchFilter, OffsetMap, TransactionFilter, map_batch
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment, remove_for_good
from headrace.server.log.files import Files
from headrace.server.log.leftovers import CLEANED
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import AppendOrigin
from headrace.server.log.segment import Segment
from headrace.server.log.segment_file import segment_path
from headrace.wire.batch import iterate_batches, parse_header
from headrace.wire.compression import Codec
from headrace.wire.errors import KafkaError
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.records import BatchBuilder, decode_records

COMPACT = {"cleanup_policy": ("compact",), "segment_bytes": 2000, "min_cleanable_dirty_ratio": 0.0}
DAY = 86_400_000
SLOW_CLEANER = Path(__file__).with_name("slow_cleaner.py")


class Compacted:
    """A compacted log and a cleaner that works in this process, on demand."""

    def __init__(self, path, clock, files=None, **settings):
        self.clock = clock
        self.path = path
        self.settings = COMPACT | settings
        self.files = files or Files()
        self.executor = ThreadPoolExecutor(1)
        self.map_bytes = 1 << 20
        self.start()

    def start(self):
        environment = Environment(clock=self.clock, files=self.files)
        self.manager = LogManager(
            [str(self.path)], environment=environment, config_for=lambda topic: LogConfig(**self.settings)
        )
        self.manager.open()
        self.log = self.manager.create("t", 0, LogConfig(**self.settings))
        self.cleaner = self.make_cleaner()

    def make_cleaner(self, worker="here"):
        async def here(task):
            for answer in clean(Environment(clock=self.clock), task):
                yield answer

        return LogCleaner(
            self.manager,
            self.executor,
            CleanerSettings(log_cleaner_dedupe_buffer_size=self.map_bytes),
            worker=here if worker == "here" else worker,
        )

    def crash(self):
        self.manager.release()
        if self.log.is_loaded:
            self.log.load().release()

    def restart(self, *, cleanly=True):
        if cleanly:
            self.manager.close()
        else:
            self.crash()
        self.start()

    def put(self, key, value, **options):
        return self.batch([(key, value)], **options)

    def batch(self, pairs, codec=Codec.NONE, origin=AppendOrigin.CLIENT, **options):
        builder = BatchBuilder(codec=codec, **options)
        for key, value in pairs:
            builder.append(self.clock.now_ms(), key, value, [("h", b"1")])
        offset = self.log.append_as_leader(
            memoryview(builder.build()), leader_epoch=0, origin=origin
        ).first_offset
        self.log.set_high_watermark(self.log.log_end_offset)
        return offset

    def marker(self, producer_id, *, committed, epoch=0):
        data = build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=0,
            committed=committed,
            timestamp=self.clock.now_ms(),
        )
        self.log.append_as_leader(memoryview(data), leader_epoch=0, origin=AppendOrigin.COORDINATOR)
        self.log.set_high_watermark(self.log.log_end_offset)

    async def clean(self):
        """Begin a segment, so that everything so far can be compacted, and compact."""
        self.log.roll()
        return await self.cleaner.clean_one()

    def headers(self):
        found, at = [], self.log.log_start_offset
        while at < self.log.log_end_offset:
            piece = self.log.read(at, 1 << 20)
            if not piece.size:
                break
            for _, header in iterate_batches(piece.read()):
                found.append(header)
                at = header.next_offset
        return found


@pytest.fixture
def make(tmp_path, clock, lab):
    made = []

    def factory(**settings):
        compacted = Compacted(tmp_path / f"data{len(made)}", clock, **settings)
        compacted.records = lambda: [
            (record.offset, record.key, record.value) for record in lab.records(compacted.log)
        ]
        made.append(compacted)
        return compacted

    yield factory
    for compacted in made:
        compacted.manager.release()
        compacted.executor.shutdown()


@pytest.mark.parametrize("codec", list(Codec))
async def test_the_latest_record_of_each_key_stays_with_its_offset(make, codec):
    box = make()
    latest = {}
    for number in range(60):
        pairs = [(b"key-%d" % ((number * 7 + i) % 11), b"%d.%d" % (number, i)) for i in range(4)]
        offset = box.batch(pairs, codec=codec)
        latest.update({key: (offset + i, value) for i, (key, value) in enumerate(pairs)})
    assert await box.clean()
    expected = sorted((offset, key, value) for key, (offset, value) in latest.items())
    assert box.records() == expected
    assert all(header.codec == codec for header in box.headers() if header.records_count)
    assert not await box.cleaner.clean_one()
    box.restart()
    assert box.records() == expected


async def test_offsets_inside_gaps_are_read_from_the_next_record(make, lab):
    box = make()
    for number in range(100):
        box.put(b"k%d" % (number % 3), b"%d" % number * 20)
    await box.clean()
    kept = [offset for offset, _, _ in box.records()]
    assert kept == [97, 98, 99]
    for offset in range(100):
        assert lab.records(box.log, offset)[0].offset == max(97, offset)
    assert box.log.log_end_offset == 100
    assert box.put(b"k0", b"next") == 100


async def test_a_second_round_compacts_across_the_first(make):
    box = make()
    for value in (b"1", b"2"):
        for number in range(50):
            box.put(b"k%d" % number, value)
        await box.clean()
    for number in range(25):
        box.put(b"k%d" % number, b"3")
    await box.clean()
    assert {key: value for _, key, value in box.records()} == {
        b"k%d" % number: b"3" if number < 25 else b"2" for number in range(50)
    }
    assert len(box.records()) == 50


async def test_the_active_segment_and_what_is_above_the_high_watermark_are_left_alone(make):
    box = make(segment_bytes=200)
    for number in range(10):
        box.put(b"k", b"%d" % number)
    box.log.high_watermark = 5
    await box.cleaner.clean_one()
    kept = [offset for offset, _, _ in box.records()]
    assert kept[-5:] == [5, 6, 7, 8, 9]
    assert 0 not in kept


async def test_a_tombstone_outlives_its_value_by_delete_retention_ms(make, clock):
    box = make(delete_retention_ms=DAY)
    box.batch([(b"gone", b"v"), (b"stays", b"v")])
    box.put(b"gone", None)
    await box.clean()
    assert box.records() == [(1, b"stays", b"v"), (2, b"gone", None)]
    horizons = [header.delete_horizon_ms for header in box.headers() if header.delete_horizon_ms is not None]
    assert horizons == [clock.now_ms() + DAY]
    clock.advance(DAY - 1)
    box.put(b"other", b"1")
    await box.clean()
    assert (2, b"gone", None) in box.records()
    clock.advance(1)
    box.put(b"other", b"2")
    await box.clean()
    assert [key for _, key, _ in box.records()] == [b"stays", b"other"]
    assert [header.delete_horizon_ms for header in box.headers() if header.records_count] == [None, None]


async def test_record_times_survive_the_delete_horizon(make, clock, lab):
    box = make()
    first = clock.now_ms()
    box.batch([(b"a", None), (b"b", b"v")])
    clock.advance(1000)
    await box.clean()
    assert [record.timestamp for record in lab.records(box.log)] == [first, first]
    assert box.log.max_timestamp_offset().timestamp == first


async def test_records_of_aborted_transactions_go_and_of_committed_ones_stay(make, clock):
    box = make()

    def write(producer_id, sequence, key, value):
        box.put(
            key, value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
        )

    box.put(b"x", b"old")
    box.put(b"y", b"old")
    write(1, 0, b"x", b"aborted")
    write(2, 0, b"y", b"committed")
    box.log.roll()
    box.marker(1, committed=False)
    box.marker(2, committed=True)
    box.put(b"z", b"v")
    await box.clean()
    values = {key: value for _, key, value in box.records() if not key.startswith(b"\x00\x00")}
    assert values == {b"x": b"old", b"y": b"committed", b"z": b"v"}
    assert [t.producer_id for t in box.log.aborted_transactions(0, 100)] == [1], (
        "until the marker goes, its transaction stays in the index"
    )


async def test_markers_go_after_their_records_and_the_delay(make, clock):
    box = make(delete_retention_ms=DAY)
    for producer_id in (1, 2):
        box.put(
            b"k%d" % producer_id,
            b"v",
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        box.marker(producer_id, committed=producer_id == 2)
    box.put(b"k2", b"newer")

    def markers():
        return [header.producer_id for header in box.headers() if header.is_control and header.records_count]

    await box.clean()
    assert markers() == [1, 2], "their producers are active: batches without records stay for their sequences"
    clock.advance(10 * DAY)
    box.log.expire_producers()
    for _ in range(2):
        box.put(b"other", b"1")
        await box.clean()
        assert markers() == [1, 2], "first the batches go, then the markers get their delete horizon"
    clock.advance(DAY + 1)
    box.put(b"other", b"2")
    await box.clean()
    assert markers() == []
    assert box.log.aborted_transactions(0, 100) == []


async def test_an_open_transaction_holds_compaction_back(make):
    box = make(segment_bytes=150)
    for number in range(5):
        box.put(b"k", b"%d" % number)
    box.put(b"t", b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    for number in range(5, 10):
        box.put(b"k", b"%d" % number)
    await box.clean()
    offsets = [offset for offset, _, _ in box.records()]
    assert [offset for offset in offsets if offset >= 5] == list(range(5, 11))
    assert len(offsets) < 11


async def test_a_producers_last_sequence_survives(make):
    box = make()
    for sequence in range(5):
        box.put(b"k", b"mine", producer_id=7, producer_epoch=0, base_sequence=sequence)
    box.put(b"k", b"other")
    box.put(b"z", b"other")
    await box.clean()
    assert [value for _, _, value in box.records()] == [b"other", b"other"]
    box.restart(cleanly=False)
    for name in os.listdir(box.log.directory):
        assert not name.endswith((".cleaned", ".swap"))
    with pytest.raises(KafkaError):
        box.put(b"k", b"gap", producer_id=7, producer_epoch=0, base_sequence=6)
    box.put(b"k", b"next", producer_id=7, producer_epoch=0, base_sequence=5)


async def test_small_segments_are_merged_and_stay_within_segment_bytes(make):
    box = make(segment_bytes=1000)
    for number in range(100):
        box.put(b"k%d" % (number % 20), b"v" * 20)
    before = len(box.log.load().segments)
    await box.clean()
    for _ in range(3):
        box.put(b"again", b"v")
        await box.clean()
    assert len(box.log.load().segments) < before // 2
    assert all(segment.size <= 1000 for segment in box.log.load().segments)
    assert len(box.records()) == 21


async def test_a_map_too_small_for_all_keys_takes_several_rounds(make):
    box = make()
    box.map_bytes = 10 * BYTES_PER_KEY
    box.cleaner = box.make_cleaner()
    for value in (b"1", b"2"):
        for number in range(40):
            box.put(b"k%d" % number, value)
    box.log.roll()
    rounds = 0
    while await box.cleaner.clean_one():
        rounds += 1
        assert rounds < 50
    assert rounds > 3
    assert [value for _, _, value in box.records()] == [b"2"] * 40


async def test_a_batch_with_more_keys_than_the_map_holds_keeps_only_its_own_log_from_being_compacted(
    make, caplog
):
    box = make()
    box.map_bytes = 10 * BYTES_PER_KEY
    box.cleaner = box.make_cleaner()
    for _ in range(20):
        box.put(b"a", b"v")
    wide = box.batch([(b"k%d" % number, b"v") for number in range(12)])
    for _ in range(20):
        box.put(b"a", b"v")
    box.log.roll()
    crowded, before = box.log, len(box.records())
    box.log = box.manager.create("other", 0, LogConfig(**box.settings | {"min_cleanable_dirty_ratio": 0.9}))
    for number in range(20):
        box.put(b"k", b"%d" % number)
    box.log.roll()
    rounds = 0
    while await box.cleaner.clean_one():
        rounds += 1
        assert rounds < 10
    assert [value for _, _, value in box.records()] == [b"19"]
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert f"the batch at offset {wide}" in warnings[0]
    assert "log.cleaner.dedupe.buffer.size" in warnings[0]
    box.log = crowded
    assert 12 + 20 < len(box.records()) < before, "what comes before the batch is compacted"
    box.map_bytes = 100 * BYTES_PER_KEY
    box.cleaner = box.make_cleaner()
    assert await box.cleaner.clean_one(), "with more room it goes on"
    assert len(box.records()) == 13


async def test_long_keys_are_told_apart(make):
    box = make()
    keys = [b"x" * 100 + b"%d" % number for number in range(20)]
    for value in (b"1", b"2"):
        for key in keys:
            box.put(key, value)
    await box.clean()
    assert [(key, value) for _, key, value in box.records()] == [(key, b"2") for key in keys]


async def test_the_dirty_ratio_and_the_lags_decide_when(make, clock):
    box = make(min_cleanable_dirty_ratio=0.5, min_compaction_lag_ms=1000, max_compaction_lag_ms=DAY)
    for _ in range(3):
        box.put(b"k", b"v" * 100)
    assert not await box.clean(), "too young"
    clock.advance(1001)
    assert await box.cleaner.clean_one()
    for number in range(50):
        box.put(b"k%d" % number, b"v" * 10)
    clock.advance(1001)
    assert await box.clean()
    box.put(b"k", b"new")
    clock.advance(1001)
    assert not await box.clean(), "too little is dirty"
    clock.advance(DAY)
    assert await box.cleaner.clean_one(), "it has been dirty for too long"


async def test_where_compaction_got_to_survives_a_restart(make):
    box = make()
    for _ in range(10):
        box.put(b"k", b"v")
    await box.clean()
    box.restart()
    assert not await box.cleaner.clean_one()
    text = (box.path / "cleaner-offset-checkpoint").read_text()
    assert text == "0\n1\nt 0 10\n"


async def test_compact_and_delete_does_both(make, clock):
    box = make(cleanup_policy=("compact", "delete"), retention_ms=DAY)
    for number in range(20):
        box.put(b"k%d" % (number % 2), b"%d" % number)
    await box.clean()
    assert len(box.records()) == 2
    clock.advance(DAY + 1)
    box.put(b"k9", b"fresh")
    box.log.delete_old_segments()
    assert [key for _, key, _ in box.records()] == [b"k9"]


async def compact_with(box, interference):
    """Compact a log of 20 records, and have something done when the work is done and not yet in service."""
    for number in range(20):
        box.put(b"k", b"%d" % number)

    async def interfering(task):
        answers = list(clean(Environment(clock=box.clock), task))
        interference(task)
        for answer in answers:
            yield answer

    box.cleaner = box.make_cleaner(interfering)
    box.log.roll()
    await box.cleaner.clean_one()


async def test_a_log_truncated_meanwhile_keeps_its_own_segments(make):
    box = make()
    await compact_with(box, lambda task: box.log.truncate_to(5))
    assert len(box.records()) == 5
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(box.log.directory))


async def test_a_log_deleted_meanwhile_is_forgotten(make):
    box = make()
    await compact_with(box, lambda task: box.manager.delete("t", 0))
    assert not await box.cleaner.clean_one()


async def test_a_topic_deleted_and_made_anew_meanwhile_has_nothing_of_the_compaction_in_its_directory(make):
    box = make()

    def make_it_anew(task):
        box.manager.delete("t", 0)
        box.log = box.manager.create("t", 0, LogConfig(**box.settings))
        # Told of the first segment, the broker stops a process that has the next in hand.
        Segment(Environment(), task.directory, 5, created_ms=0, suffix=CLEANED).create_files()

    await compact_with(box, make_it_anew)
    box.put(b"k", b"new")
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(box.log.directory))
    assert [value for _, _, value in box.records()] == [b"new"]


async def test_each_new_segment_is_in_service_before_the_next_is_made(make):
    box = make(segment_bytes=1000)
    for number in range(60):
        box.put(b"k%d" % (number % 30), b"v" * 20)
    box.log.roll()
    expected = {key: value for _, key, value in box.records()}
    counts = []

    async def watched(task):
        for answer in clean(Environment(clock=box.clock), task):
            counts.append(len(box.records()))
            yield answer

    box.cleaner = box.make_cleaner(watched)
    assert await box.cleaner.clean_one()
    assert len(counts) > 3, "several segments and the end"
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 60
    assert 30 < counts[1] < 60, "one segment is compacted, the others are not"
    assert counts[-1] == 30
    assert {key: value for _, key, value in box.records()} == expected


async def test_what_is_in_service_stays_when_the_rest_cannot_be_compacted(make):
    box = make(segment_bytes=1000)
    for number in range(60):
        box.put(b"k%d" % (number % 30), b"v" * 20)
    box.log.roll()
    expected = {key: value for _, key, value in box.records()}

    async def failing(task):
        answers = clean(Environment(clock=box.clock), task)
        yield next(answers)
        next(answers)
        yield CleaningEnd(error="the machine is tired")

    box.cleaner = box.make_cleaner(failing)
    assert await box.cleaner.clean_one()
    assert 30 < len(box.records()) < 60
    assert {key: value for _, key, value in box.records()} == expected
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(box.log.directory))
    box.cleaner = box.make_cleaner()
    assert await box.cleaner.clean_one(), "it is not taken for compacted"
    assert [(key, value) for _, key, value in box.records()] == list(expected.items())


async def test_a_damaged_segment_is_left_as_it_is_and_not_tried_again_at_once(make):
    box = make()
    for number in range(20):
        box.put(b"k", b"%d" % number)
    box.log.roll()
    handle = Files().open(box.log.load().segments.first.path(".log"), writable=True)
    handle.write_at(b"\xff\xff\xff", 100)
    size = handle.size()
    assert await box.cleaner.clean_one()
    assert not await box.cleaner.clean_one()
    assert handle.size() == size
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(box.log.directory))


class CrashingFiles(Files):
    """Stops the world at the n-th rename of a swap."""

    __slots__ = ("left",)

    def rename(self, source, target):
        if self.left is not None:
            if self.left == 0:
                raise Stopped
            self.left -= 1
        super().rename(source, target)


class Stopped(BaseException):
    """The machine stops here."""


@pytest.mark.parametrize("renames", range(16))
async def test_a_crash_at_any_moment_of_a_swap_loses_and_repeats_nothing(tmp_path, clock, lab, renames):
    files = CrashingFiles()
    files.left = None
    box = Compacted(tmp_path, clock, files, segment_bytes=600)
    for number in range(30):
        box.put(b"k%d" % (number % 4), b"%d" % number)
    box.log.roll()
    expected = {record.key: record.value for record in lab.records(box.log)}
    files.left = renames
    try:
        await box.cleaner.clean_one()
    except Stopped:
        pass
    files.left = None
    box.restart(cleanly=False)
    box.log.set_high_watermark(30)
    records = lab.records(box.log)
    assert {record.key: record.value for record in records} == expected
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    assert box.log.log_end_offset == 30
    assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in os.listdir(box.log.directory))
    assert await box.cleaner.clean_one()
    assert len(lab.records(box.log)) == 4
    box.manager.close()
    box.executor.shutdown()


@pytest.mark.parametrize("renames", range(30))
async def test_cleaned_files_of_another_compaction_do_not_undo_a_swap_that_a_crash_interrupts(
    tmp_path, clock, lab, renames
):
    files = CrashingFiles()
    files.left = None
    box = Compacted(tmp_path, clock, files, segment_bytes=600)
    for number in range(30):
        box.put(b"k%d" % number, b"v")
    box.log.roll()
    expected = lab.records(box.log)
    bases = box.log.load().segments.bases
    files.left = renames
    try:
        await box.cleaner.clean_one()
    except Stopped:
        pass
    files.left = None
    for base_offset in bases[:2]:
        Files().create(segment_path(box.log.directory, base_offset, ".index") + CLEANED)
    box.restart(cleanly=False)
    assert lab.records(box.log) == expected
    assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in os.listdir(box.log.directory))
    box.manager.close()
    box.executor.shutdown()


async def test_the_real_process_compacts_and_ends(make, clock):
    box = make()
    for number in range(50):
        box.put(b"k%d" % (number % 5), b"%d" % number)
    box.log.roll()
    box.cleaner = box.make_cleaner(None)
    assert await box.cleaner.clean_one()
    process = box.cleaner._process._process
    assert process is not None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(own + NICENESS, 19)
    assert os.sched_getscheduler(process.pid) == os.SCHED_BATCH
    assert [value for _, _, value in box.records()] == [b"45", b"46", b"47", b"48", b"49"]
    await box.cleaner._process.stop()
    assert process.returncode is not None
    remove_for_good(box.files, box.manager.environment.trash.take_due(10**15))


async def test_the_process_waits_for_more_work_and_ends_when_none_comes(make, clock):
    box = make()
    box.cleaner = box.make_cleaner(None)
    running = asyncio.create_task(box.cleaner.run())

    async def until(condition):
        for _ in range(3000):
            if condition():
                return
            clock.advance(1000)
            await asyncio.sleep(0.01)
        raise AssertionError("it never happened")

    def write():
        for number in range(50):
            box.put(b"k%d" % (number % 5), b"%d" % number)
        box.log.roll()

    write()
    await until(lambda: len(box.records()) == 5)
    process = box.cleaner._process._process
    assert process is not None
    write()
    await until(lambda: len(box.records()) == 5)
    assert box.cleaner._process._process is process
    await until(lambda: box.cleaner._process._process is None)
    await until(lambda: process.returncode is not None)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_the_process_ends_with_a_broker_that_is_killed_whatever_it_is_doing(tmp_path):
    broker = subprocess.Popen([sys.executable, str(SLOW_CLEANER), str(tmp_path)], stdout=subprocess.PIPE)
    try:
        cleaner = os.pidfd_open(int(broker.stdout.readline()))
    finally:
        broker.kill()
        broker.wait(30)
        broker.stdout.close()
    try:
        assert select.select([cleaner], [], [], 30)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(cleaner, signal.SIGKILL)
        os.close(cleaner)


def test_a_process_that_starts_after_its_broker_has_ended_does_no_task():
    command = [sys.executable, "-m", "headrace.server.log.cleaner_process", "0"]
    ended = subprocess.run(command, input=b"a task\n", capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGKILL, b"", b"")


async def test_a_process_that_dies_costs_one_round(make):
    box = make()
    for _ in range(20):
        box.put(b"k", b"v")
    box.log.roll()
    box.cleaner = box.make_cleaner(None)
    process = box.cleaner._process
    await process.start()
    process._process.kill()
    await process._process.wait()
    assert await box.cleaner.clean_one()
    assert len(box.records()) == 20
    box.put(b"k", b"v")
    assert await box.clean()
    assert len(box.records()) <= 2
    await process.stop()


async def test_gaps_that_compaction_made_survive_a_crash_before_the_topics_settings_are_known(make, clock):
    box = make(segment_bytes=300)
    for number in range(40):
        box.put(b"k%d" % (number % 20), b"%d" % number * 10)
        box.put(b"always", b"%d" % number)
    await box.clean()
    before = box.records()
    end_offset = box.log.log_end_offset
    box.settings = {"segment_bytes": 300}  # what a broker goes by until it has read the cluster's facts
    box.restart(cleanly=False)
    assert box.log.log_end_offset == end_offset
    assert box.records() == before


async def test_a_topic_made_anew_under_the_same_name_is_compacted_from_its_start(make):
    box = make()
    for number in range(30):
        box.put(b"k%d" % (number % 3), b"%d" % number)
    assert await box.clean()
    box.manager.delete("t", 0)
    box.log = box.manager.create("t", 0, LogConfig(**box.settings))
    for number in range(60):
        box.put(b"k%d" % number if number > 20 else b"early", b"%d" % number)
    assert await box.clean()
    assert [offset for offset, key, _ in box.records() if key == b"early"] == [20]


async def test_where_a_deleted_topic_was_compacted_to_is_not_taken_for_a_new_one_after_a_restart(make):
    box = make(segment_bytes=100_000)
    for number in range(30):
        box.put(b"k%d" % (number % 3), b"%d" % number)
    assert await box.clean()
    box.manager.delete("t", 0)
    box.log = box.manager.create("t", 0, LogConfig(**box.settings))
    for number in range(60):
        box.put(b"k%d" % number if number > 20 else b"early", b"%d" % number)
    assert not await box.cleaner.clean_one()  # nothing is sealed yet; but it looks around
    box.restart()
    assert await box.clean()
    assert [offset for offset, key, _ in box.records() if key == b"early"] == [20]


async def test_the_latest_timestamp_is_one_of_a_record_that_is_still_there(make, clock):
    box = make()
    clock.advance(10_000)
    box.put(b"k", b"latest by its time", producer_id=7, producer_epoch=0, base_sequence=0)
    clock.advance(-5_000)
    box.put(b"other", b"v")
    clock.advance(-1_000)
    box.put(b"k", b"latest by its offset")
    assert box.log.max_timestamp_offset().offset == 0
    await box.clean()
    assert [offset for offset, _, _ in box.records()] == [1, 2]
    assert box.log.max_timestamp_offset().offset == 1


BATCHES = st.lists(
    st.lists(
        st.tuples(st.none() | st.sampled_from([b"a", b"b", b"c", b"d" * 40]), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=8,
)


@given(BATCHES, st.integers(0, 20), st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_record_stays_when_no_later_one_has_its_key_whatever_is_known_of_its_batch(
    batches, start, room, random
):
    """Batches that were mapped as a whole, in part or not at all, with offsets in their places or elsewhere."""
    built, base = [], 0
    for pairs in batches:
        builder = BatchBuilder(base_offset=base)
        places = list(range(len(pairs)))
        last = base + len(pairs) - 1
        if random.random() < 0.3:
            random.shuffle(places)
        elif random.random() < 0.3:
            places = sorted(random.sample(range(len(pairs) + 3), len(pairs)))
            last = base + len(pairs) + 2
        for place, (key, has_value) in zip(places, pairs, strict=True):
            builder.append(1000, key, b"v" if has_value else None, offset=base + place)
        built.append(builder.build(last_offset=last))
        base = last + 1
    offsets = OffsetMap(room * BYTES_PER_KEY, start)
    mapped = {}
    for batch in built:
        header = parse_header(batch)
        if header.last_offset >= start and not map_batch(offsets, TransactionFilter(), header, batch):
            break
        for record in decode_records(batch, header):
            if record.key is not None and record.offset >= start:
                mapped[record.key] = record.offset
    offsets.finish()
    horizon = BatchFilter(offsets, TransactionFilter(), {}, now_ms=5000, delete_retention_ms=10, upper=-1)
    for batch in built:
        header = parse_header(batch)
        kept = horizon.filter(header, batch)
        expected = [
            (record.offset, record.key, record.value, record.timestamp)
            for record in decode_records(batch, header)
            if record.offset > offsets.latest_offset
            or (record.key is not None and record.offset >= offsets.get(record.key))
        ]
        found = [] if kept is None else decode_records(kept)
        assert [(record.offset, record.key, record.value, record.timestamp) for record in found] == expected
    for key, offset in mapped.items():
        assert offsets.get(key) >= offset
