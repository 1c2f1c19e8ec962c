"""Batches go in with the next offsets and come out as they were, wherever a read begins."""

from __future__ import annotations

import pytest

from headrace.server.log.partition import ReopenFacts
from headrace.wire.batch import iterate_batches
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError


def test_a_batch_gets_the_next_offsets_and_the_leaders_epoch(lab):
    log = lab.open()
    lab.append(log, b"a", b"b")
    result = log.append_as_leader(lab.batch(b"c"), leader_epoch=7)
    assert (result.first_offset, result.last_offset, result.duplicate) == (2, 2, False)
    assert log.log_end_offset == 3
    headers = [header for _, header in iterate_batches(log.read(0, 1 << 20).read())]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 0), (2, 7)]
    assert lab.values(log) == [b"a", b"b", b"c"]


def test_a_read_begins_with_the_batch_that_holds_the_offset(lab):
    log = lab.open()
    for number in range(50):
        lab.append(log, *(b"%d.%d" % (number, i) for i in range(3)))
    for offset in range(150):
        piece = log.read(offset, 1 << 20)
        assert piece.first_offset == offset // 3 * 3
        assert lab.records(log, offset)[0].offset == offset
    assert log.read(150, 1 << 20).size == 0


@pytest.mark.parametrize("size", [10, 700, 5000])
@pytest.mark.parametrize("codec", list(Codec))
def test_everything_is_found_across_segments_whatever_the_batch_size(lab, size, codec):
    log = lab.open(segment_bytes=20_000)
    values = [bytes([number % 256]) * size for number in range(120)]
    for number in range(0, 120, 3):
        lab.append(log, *values[number : number + 3], codec=codec)
    assert lab.values(log) == values
    for offset in (0, 1, 59, 60, 61, 119):
        assert lab.values(log, offset) == values[offset:]
    log.close()
    reopened = lab.open(ReopenFacts(clean=True), segment_bytes=20_000)
    assert lab.values(reopened) == values


def test_a_read_returns_whole_batches_within_its_limit(lab):
    log = lab.open()
    for _ in range(200):
        lab.append(log, b"x" * 100)
    size = len(lab.batch(b"x" * 100))
    for limit in (size, 3 * size, 3 * size + 1, 5000, 9000, 20_000):
        piece = log.read(0, limit)
        assert size <= piece.size <= limit
        assert piece.size % size == 0
        assert piece.end_offset >= piece.size // size
    assert log.read(0, 1).size == size
    assert log.read(0, 1, min_one_batch=False).size == 0


def test_a_read_stops_below_the_offset_given(lab):
    log = lab.open()
    for number in range(100):
        lab.append(log, b"%d" % number)
    assert [record.offset for record in lab.records(log, 40, end=60)] == list(range(40, 60))
    assert log.read(60, 1 << 20, up_to_offset=60).size == 0


def test_an_offset_outside_the_log_is_refused(lab):
    log = lab.open()
    lab.append(log, b"a")
    for offset in (-1, 2):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, 100)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
