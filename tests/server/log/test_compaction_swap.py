"""Compacted segments replace the old ones, whatever else happens to the log and wherever the broker crashes."""

from __future__ import annotations

import os

import pytest

from headrace.server.log.cleaner_process import clean
from headrace.server.log.cleaning_task import CleaningEnd
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files
from headrace.server.log.leftovers import CLEANED
from headrace.server.log.segment import Segment
from headrace.server.log.segment_file import segment_path
from tests.server.log.compacting import DAY, Compacted


async def compact_with(box, interference):
    """Compact a log of 20 records, and call `interference` when the new segments are ready but not in service yet."""
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


async def test_a_log_truncated_meanwhile_keeps_its_own_segments(make_compacted):
    box = make_compacted()
    await compact_with(box, lambda task: box.log.truncate_to(5))
    assert len(box.records()) == 5
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(box.log.directory))


async def test_a_log_deleted_meanwhile_is_forgotten(make_compacted):
    box = make_compacted()
    await compact_with(box, lambda task: box.manager.delete("t", 0))
    assert not await box.cleaner.clean_one()


async def test_a_topic_deleted_and_made_anew_meanwhile_has_nothing_of_the_compaction_in_its_directory(
    make_compacted,
):
    box = make_compacted()

    def make_it_anew(task):
        box.manager.delete("t", 0)
        box.log = box.manager.create("t", 0, LogConfig(**box.settings))
        # When the first segment is announced, the broker stops a process that is already working on the next.
        Segment(Environment(), task.directory, 5, created_ms=0, suffix=CLEANED).create_files()

    await compact_with(box, make_it_anew)
    box.put(b"k", b"new")
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(box.log.directory))
    assert [value for _, _, value in box.records()] == [b"new"]


async def test_each_new_segment_is_in_service_before_the_next_is_made(make_compacted):
    box = make_compacted(segment_bytes=1000)
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


async def test_what_is_in_service_stays_when_the_rest_cannot_be_compacted(make_compacted):
    box = make_compacted(segment_bytes=1000)
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


async def test_gaps_that_compaction_made_survive_a_crash_before_the_topics_settings_are_known(
    make_compacted, clock
):
    box = make_compacted(segment_bytes=300)
    for number in range(40):
        box.put(b"k%d" % (number % 20), b"%d" % number * 10)
        box.put(b"always", b"%d" % number)
    await box.clean()
    before = box.records()
    end_offset = box.log.log_end_offset
    box.settings = {
        "segment_bytes": 300
    }  # the defaults that a broker uses until it has read the cluster's metadata
    box.restart(cleanly=False)
    assert box.log.log_end_offset == end_offset
    assert box.records() == before


async def test_a_deleted_key_stays_deleted_in_a_log_that_moves_to_another_directory(make_compacted):
    box = make_compacted(delete_retention_ms=0)
    box.put(b"k", b"v")
    box.put(b"k", None)
    box.put(b"other", b"v")
    (directory,) = box.manager.directories
    copy = box.manager.futures.create(box.log, directory)
    copy.append_as_follower(memoryview(box.log.read(0, 1).read()))
    assert copy.log_end_offset == 1
    for _ in range(3):
        box.put(b"other", b"v")
        await box.clean()
        box.clock.advance(DAY)
    while copy.log_end_offset < box.log.log_end_offset:
        copy.append_as_follower(memoryview(box.log.read(copy.log_end_offset, 1 << 20).read()))
    box.manager.put_into_service(box.log, copy)
    latest = {key: value for _, key, value in box.records()}
    assert latest[b"other"] == b"v"
    assert latest.get(b"k") is None


async def test_a_log_that_begins_to_move_meanwhile_keeps_its_own_segments(make_compacted):
    box = make_compacted()
    (directory,) = box.manager.directories
    await compact_with(box, lambda task: box.manager.futures.create(box.log, directory))
    assert len(box.records()) == 20
    box.manager.stop_moving("t", 0)
    box.cleaner = box.make_cleaner()
    box.put(b"k", b"new")
    assert await box.clean()
    assert len(box.records()) == 1
