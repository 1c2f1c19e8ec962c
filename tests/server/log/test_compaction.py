"""Compaction keeps the latest record of every key, with its offset and its time."""

from __future__ import annotations

import os

import pytest

from headrace.wire.compression import Codec
from headrace.wire.errors import KafkaError
from tests.server.log.compacting import DAY


@pytest.mark.parametrize("codec", list(Codec))
async def test_the_latest_record_of_each_key_stays_with_its_offset(make_compacted, codec):
    box = make_compacted()
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


async def test_offsets_inside_gaps_are_read_from_the_next_record(make_compacted, lab):
    box = make_compacted()
    for number in range(100):
        box.put(b"k%d" % (number % 3), b"%d" % number * 20)
    await box.clean()
    kept = [offset for offset, _, _ in box.records()]
    assert kept == [97, 98, 99]
    for offset in range(100):
        assert lab.records(box.log, offset)[0].offset == max(97, offset)
    assert box.log.log_end_offset == 100
    assert box.put(b"k0", b"next") == 100


async def test_a_second_round_compacts_across_the_first(make_compacted):
    box = make_compacted()
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


async def test_the_active_segment_and_what_is_above_the_high_watermark_are_left_alone(make_compacted):
    box = make_compacted(segment_bytes=200)
    for number in range(10):
        box.put(b"k", b"%d" % number)
    box.log.high_watermark = 5
    await box.cleaner.clean_one()
    kept = [offset for offset, _, _ in box.records()]
    assert kept[-5:] == [5, 6, 7, 8, 9]
    assert 0 not in kept


async def test_a_tombstone_outlives_its_value_by_delete_retention_ms(make_compacted, clock):
    box = make_compacted(delete_retention_ms=DAY)
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


async def test_record_times_survive_the_delete_horizon(make_compacted, clock, lab):
    box = make_compacted()
    first = clock.now_ms()
    box.batch([(b"a", None), (b"b", b"v")])
    clock.advance(1000)
    await box.clean()
    assert [record.timestamp for record in lab.records(box.log)] == [first, first]
    assert box.log.max_timestamp_offset().timestamp == first


async def test_a_producers_last_sequence_survives(make_compacted):
    box = make_compacted()
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


async def test_long_keys_are_told_apart(make_compacted):
    box = make_compacted()
    keys = [b"x" * 100 + b"%d" % number for number in range(20)]
    for value in (b"1", b"2"):
        for key in keys:
            box.put(key, value)
    await box.clean()
    assert [(key, value) for _, key, value in box.records()] == [(key, b"2") for key in keys]


async def test_compact_and_delete_does_both(make_compacted, clock):
    box = make_compacted(cleanup_policy=("compact", "delete"), retention_ms=DAY)
    for number in range(20):
        box.put(b"k%d" % (number % 2), b"%d" % number)
    await box.clean()
    assert len(box.records()) == 2
    clock.advance(DAY + 1)
    box.put(b"k9", b"fresh")
    box.log.delete_old_segments()
    assert [key for _, key, _ in box.records()] == [b"k9"]


async def test_the_latest_timestamp_is_one_of_a_record_that_is_still_there(make_compacted, clock):
    box = make_compacted()
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
