"""Which log the cleaner picks, how far one round gets, and where the next one starts."""

from __future__ import annotations

import os

from headrace.server.log.compaction import BYTES_PER_KEY
from headrace.server.log.config import LogConfig
from headrace.server.log.files import Files
from tests.server.log.compacting import DAY


async def test_small_segments_are_merged_and_stay_within_segment_bytes(make_compacted):
    box = make_compacted(segment_bytes=1000)
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


async def test_a_map_too_small_for_all_keys_takes_several_rounds(make_compacted):
    box = make_compacted()
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
    make_compacted, caplog
):
    box = make_compacted()
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


async def test_the_dirty_ratio_and_the_lags_decide_when(make_compacted, clock):
    box = make_compacted(min_cleanable_dirty_ratio=0.5, min_compaction_lag_ms=1000, max_compaction_lag_ms=DAY)
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


async def test_where_compaction_got_to_survives_a_restart(make_compacted):
    box = make_compacted()
    for _ in range(10):
        box.put(b"k", b"v")
    await box.clean()
    box.restart()
    assert not await box.cleaner.clean_one()
    text = (box.path / "cleaner-offset-checkpoint").read_text()
    assert text == "0\n1\nt 0 10\n"


async def test_a_damaged_segment_is_left_as_it_is_and_not_tried_again_at_once(make_compacted):
    box = make_compacted()
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


async def test_a_topic_made_anew_under_the_same_name_is_compacted_from_its_start(make_compacted):
    box = make_compacted()
    for number in range(30):
        box.put(b"k%d" % (number % 3), b"%d" % number)
    assert await box.clean()
    box.manager.delete("t", 0)
    box.log = box.manager.create("t", 0, LogConfig(**box.settings))
    for number in range(60):
        box.put(b"k%d" % number if number > 20 else b"early", b"%d" % number)
    assert await box.clean()
    assert [offset for offset, key, _ in box.records() if key == b"early"] == [20]


async def test_where_a_deleted_topic_was_compacted_to_is_not_taken_for_a_new_one_after_a_restart(
    make_compacted,
):
    box = make_compacted(segment_bytes=100_000)
    for number in range(30):
        box.put(b"k%d" % (number % 3), b"%d" % number)
    assert await box.clean()
    box.manager.delete("t", 0)
    box.log = box.manager.create("t", 0, LogConfig(**box.settings))
    for number in range(60):
        box.put(b"k%d" % number if number > 20 else b"early", b"%d" % number)
    assert not await box.cleaner.clean_one()  # nothing is sealed yet, but the cleaner checks the log
    box.restart()
    assert await box.clean()
    assert [offset for offset, key, _ in box.records() if key == b"early"] == [20]
