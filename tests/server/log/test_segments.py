"""When a new segment begins, and which old ones retention removes."""

from __future__ import annotations

import os

import pytest

from headrace.server.log.environment import remove_for_good
from headrace.server.log.partition import ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError

DAY = 86_400_000


def logs_on_disk(log) -> list[int]:
    return sorted(int(name[:20]) for name in os.listdir(log.directory) if name.endswith(".log"))


def test_a_segment_ends_when_the_next_batch_would_not_fit(lab):
    size = len(lab.batch(b"x" * 100))
    log = lab.open(segment_bytes=3 * size)
    for _ in range(7):
        lab.append(log, b"x" * 100)
    assert log.load().segments.bases == [0, 3, 6] == logs_on_disk(log)


def test_a_segment_ends_when_its_first_record_is_older_than_segment_ms(lab):
    log = lab.open(segment_ms=1000)
    lab.append(log, b"a")
    lab.clock.advance(1000)
    lab.append(log, b"b")
    assert log.load().segments.bases == [0]
    lab.clock.advance(1)
    lab.append(log, b"c")
    assert log.load().segments.bases == [0, 2]
    lab.append(log, b"d")
    assert log.load().segments.bases == [0, 2]


def test_record_times_decide_and_wall_time_where_there_are_none(lab):
    log = lab.open(segment_ms=1000)
    lab.append(log, b"a", timestamp=5000)
    lab.clock.advance(DAY)
    lab.append(log, b"b", timestamp=5500)
    assert log.load().segments.bases == [0]
    without = lab.open(name="without", segment_ms=1000)
    lab.append(without, b"a", timestamp=-1)
    lab.append(without, b"b", timestamp=-1)
    lab.clock.advance(1001)
    lab.append(without, b"c", timestamp=-1)
    assert without.load().segments.bases == [0, 2]


def test_segment_ms_counts_from_the_first_record_after_a_restart_too(lab):
    log = lab.open(segment_ms=1000)
    lab.append(log, b"a")
    log = lab.open(log.close(), segment_ms=1000)
    lab.clock.advance(1001)
    lab.append(log, b"b")
    assert log.load().segments.bases == [0, 1]


def test_a_full_index_ends_a_segment(lab):
    log = lab.open(segment_index_bytes=120, index_interval_bytes=0)
    for _ in range(40):
        lab.clock.advance(1)
        lab.append(log, b"x")
    assert len(log.load().segments) > 2
    for segment in log.load().segments:
        assert segment.offset_index.count * 8 <= 120
        assert segment.time_index.count * 12 <= 120
    assert len(lab.values(log)) == 40


def test_retention_by_time_goes_by_the_largest_timestamp(lab):
    log = lab.open(segment_bytes=100, retention_ms=DAY)
    for _ in range(5):
        lab.append(log, b"x" * 30)
        lab.clock.advance(DAY // 4)
    log.set_high_watermark(5)
    assert log.delete_old_segments() == 1
    assert log.log_start_offset == 1
    with pytest.raises(KafkaError) as caught:
        log.read(0, 100)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    lab.clock.advance(10 * DAY)
    assert log.delete_old_segments() == 4
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert lab.append(log, b"next") == 5


def test_retention_by_size_keeps_at_least_that_much(lab):
    size = len(lab.batch(b"x" * 100))
    log = lab.open(segment_bytes=size, retention_bytes=3 * size, retention_ms=-1)
    for _ in range(10):
        lab.append(log, b"x" * 100)
    log.set_high_watermark(10)
    log.delete_old_segments()
    assert log.log_start_offset == 7
    assert log.size == 3 * size


@pytest.mark.parametrize(
    "settings",
    [{"retention_ms": -1, "retention_bytes": -1}, {"cleanup_policy": ("compact",), "retention_bytes": 1}],
)
def test_forever_means_forever(lab, settings):
    log = lab.open(segment_bytes=100, **settings)
    for _ in range(5):
        lab.append(log, b"x" * 30, key=b"k")
    log.set_high_watermark(5)
    lab.clock.advance(10_000 * DAY)
    assert log.delete_old_segments() == 0
    assert len(lab.values(log)) == 5


def test_retention_never_passes_the_high_watermark(lab):
    log = lab.open(segment_bytes=100, retention_bytes=0)
    for _ in range(5):
        lab.append(log, b"x" * 30)
    log.set_high_watermark(3)
    log.delete_old_segments()
    assert log.log_start_offset == 3


def test_deleted_records_are_gone_at_once_and_their_segments_with_the_next_retention(lab):
    log = lab.open(segment_bytes=200, retention_ms=-1)
    for _ in range(10):
        lab.append(log, b"x" * 30)
    log.set_high_watermark(8)
    with pytest.raises(KafkaError) as caught:
        log.delete_records(9)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.delete_records(5)
    assert log.log_start_offset == 5
    assert lab.records(log)[0].offset == 5
    assert log.delete_old_segments() == 2
    assert log.load().segments.first.base_offset == 4
    assert log.log_start_offset == 5
    log.delete_records(3)
    assert log.log_start_offset == 5


def test_a_log_deleted_past_what_survived_a_crash_begins_where_it_was_deleted_to(lab):
    log = lab.open()
    for _ in range(5):
        lab.append(log, b"x")
    path = log.load().active.path(".log")
    log.load().release()
    os.truncate(path, 100)
    log = lab.open(ReopenFacts(log_start_offset=4))
    assert lab.append(log, b"next") == 4
    assert lab.values(log) == [b"next"]


def test_removed_files_wait_for_their_delay_and_open_slices_stay_readable(lab):
    log = lab.open(segment_bytes=100, retention_ms=DAY, file_delete_delay_ms=60_000)
    for number in range(4):
        lab.append(log, b"%d" % number * 30)
    log.set_high_watermark(4)
    piece = log.read(0, 1000)
    lab.clock.advance(2 * DAY)
    log.delete_old_segments()
    assert logs_on_disk(log) == [4]
    assert f"{0:020d}.log.deleted" in os.listdir(log.directory)
    assert lab.environment.trash.take_due(lab.clock.now_ms() + 59_999) == []
    remove_for_good(lab.environment.files, lab.environment.trash.take_due(lab.clock.now_ms() + 60_000))
    assert not any(name.endswith(".deleted") for name in os.listdir(log.directory))
    assert b"0" * 30 in bytes(piece.read())


def test_leftovers_of_a_deletion_go_when_the_log_is_next_opened(lab):
    log = lab.open(segment_bytes=100, retention_bytes=0)
    for _ in range(4):
        lab.append(log, b"x" * 30)
    log.set_high_watermark(4)
    log.delete_old_segments()
    log = lab.open(log.close())
    log.load()
    assert not any(name.endswith(".deleted") for name in os.listdir(log.directory))


def test_offsets_further_than_an_index_reaches_begin_a_segment(lab):
    """A follower of a compacted leader may get batches more than 2^31 offsets apart."""
    import struct

    log = lab.open()
    lab.append(log, b"a")
    far = lab.batch(b"b")
    struct.pack_into(">q", far, 0, 2**31 + 5)
    log.append_as_follower(far)
    assert log.load().segments.bases == [0, 2**31 + 5]
    assert lab.values(log) == [b"a", b"b"]
