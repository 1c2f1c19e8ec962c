"""Looking offsets up by time finds the first record that is not older."""

from __future__ import annotations

import random
import sys

import pytest

from headrace.server.log.partition import ReopenFacts
from headrace.server.log.segment import Segment
from headrace.wire.compression import Codec
from headrace.wire.records import BatchBuilder


def batch_of(timestamps, codec=Codec.NONE) -> memoryview:
    builder = BatchBuilder(codec=codec)
    for timestamp in timestamps:
        builder.append(timestamp, None, b"v" * 20)
    return memoryview(builder.build())


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("reopened", ["no", "cleanly", "after a crash"])
def test_a_lookup_finds_the_first_record_not_before_a_time(lab, codec, reopened):
    settings = {"segment_bytes": 1000, "index_interval_bytes": 100}
    log = lab.open(**settings)
    base = lab.clock.now_ms() - 100_000
    chance = random.Random(5)
    times = []
    for number in range(60):
        batch = [base + number * 100 + chance.randrange(-150, 150) for _ in range(chance.randrange(1, 5))]
        log.append_as_leader(batch_of(batch, codec), leader_epoch=number // 20)
        times += batch
    if reopened == "cleanly":
        log = lab.open(log.close(), **settings)
    elif reopened == "after a crash":
        log.load().release()
        log = lab.open(ReopenFacts(), **settings)
    for target in [base - 1000, base, *(base + number * 37 for number in range(170)), base + 10**6]:
        expected = next((offset for offset, time in enumerate(times) if time >= target), None)
        found = log.offset_for_timestamp(target)
        assert (found.offset if found else None) == expected
        if found:
            assert found.timestamp == times[expected]
            assert found.leader_epoch == log.epoch_for(expected)
    latest = log.max_timestamp_offset()
    assert (latest.timestamp, latest.offset) == (max(times), times.index(max(times)))


def test_records_before_the_log_start_are_not_found(lab):
    log = lab.open()
    log.append_as_leader(batch_of([1000, 2000, 3000]), leader_epoch=0)
    log.set_high_watermark(3)
    log.delete_records(2)
    assert log.offset_for_timestamp(0).offset == 2
    assert log.offset_for_timestamp(3001) is None


def test_an_empty_log_has_its_end_and_nothing_by_time(lab):
    log = lab.open()
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None
    assert log.earliest_offset() == (-1, 0, -1)
    assert log.latest_offset() == (-1, 0, -1)


def test_earliest_and_latest_carry_their_epochs(lab):
    log = lab.open()
    lab.append(log, b"a", leader_epoch=3)
    lab.append(log, b"b", leader_epoch=5)
    assert log.earliest_offset() == (-1, 0, 3)
    assert log.latest_offset() == (-1, 2, 5)


def test_records_without_timestamps_are_not_found_by_time(lab):
    log = lab.open()
    log.append_as_leader(batch_of([-1, -1]), leader_epoch=0)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None


@pytest.mark.sources("Segment.max_timestamp")
def test_the_latest_record_is_found_though_the_log_grows_while_it_is_looked_for(lab):
    log = lab.open()
    lab.append(log, b"a", timestamp=1000)
    grown = []

    class Growing(Segment):
        """Takes a later record just after its largest timestamp was read."""

        __slots__ = ()

        @property
        def max_timestamp(self):
            timestamp = Segment.max_timestamp.__get__(self)
            if not grown and sys._getframe(1).f_code.co_name == "latest_timestamp":
                grown.append(lab.append(log, b"b", timestamp=2000))
            return timestamp

        @max_timestamp.setter
        def max_timestamp(self, timestamp):
            Segment.max_timestamp.__set__(self, timestamp)

    log.load().active.__class__ = Growing
    found = log.max_timestamp_offset()
    assert grown == [1]
    assert found.timestamp in (1000, 2000)
