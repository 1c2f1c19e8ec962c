"""What followers and leaders need of a log: taking batches as they are, truncating, and knowing epochs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from headrace.server.log.partition import ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError


def everything(log) -> memoryview:
    return memoryview(bytearray(log.read(log.log_start_offset, 1 << 20).read()))


def test_a_follower_holds_the_same_bytes_as_its_leader(lab):
    leader, follower = lab.open(name="leader"), lab.open(name="follower", segment_bytes=700)
    for number in range(30):
        lab.append(leader, b"%d" % number * 20, leader_epoch=number // 10)
    while follower.log_end_offset < 30:
        piece = leader.read(follower.log_end_offset, 900)
        follower.append_as_follower(memoryview(bytearray(piece.read())))
    assert lab.values(follower) == lab.values(leader)
    assert follower.load().epochs.entries == leader.load().epochs.entries == [(0, 0), (1, 10), (2, 20)]
    assert len(follower.load().segments) > 2
    follower.load().release()
    again = lab.open(ReopenFacts(), name="follower")
    assert lab.values(again) == lab.values(leader)


def test_a_cut_last_batch_is_left_out(lab):
    leader, follower = lab.open(name="leader"), lab.open(name="follower")
    lab.append(leader, b"a")
    lab.append(leader, b"b")
    data = everything(leader)
    result = follower.append_as_follower(data[:-1])
    assert result.last_offset == 0
    assert follower.append_as_follower(data[:20]) is None


def test_a_batch_larger_than_a_segment_is_taken_all_the_same(lab):
    leader, follower = lab.open(name="leader"), lab.open(name="follower", segment_bytes=100)
    lab.append(leader, b"small")
    lab.append(leader, b"x" * 1000)
    follower.append_as_follower(everything(leader))
    assert lab.values(follower) == [b"small", b"x" * 1000]


@pytest.mark.parametrize("damage", [8, 16, 25, 65])
def test_damaged_batches_are_refused_whole(lab, damage):
    leader, follower = lab.open(name="leader"), lab.open(name="follower")
    for _ in range(3):
        lab.append(leader, b"abc")
    data = everything(leader)
    data[len(data) // 3 + damage] ^= 0x7F
    if damage == 8:
        assert follower.append_as_follower(data).last_offset == 0, (
            "an impossible length looks like a cut batch"
        )
        return
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower(data)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert follower.log_end_offset == 0


def test_batches_that_do_not_continue_the_log_are_refused(lab):
    leader, follower = lab.open(name="leader"), lab.open(name="follower")
    lab.append(leader, b"a")
    lab.append(leader, b"b")
    data = everything(leader)
    follower.append_as_follower(memoryview(bytearray(data)))
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower(data)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    twice = lab.batch(b"c")
    struct.pack_into(">q", twice, 0, 2)
    with pytest.raises(KafkaError):
        follower.append_as_follower(memoryview(bytearray(bytes(twice) + bytes(twice))))
    assert follower.log_end_offset == 2


@pytest.mark.parametrize("offset", [0, 1, 5, 29, 30, 31])
def test_truncation_removes_what_follows_and_the_log_goes_on(lab, offset):
    log = lab.open(segment_bytes=700, index_interval_bytes=100)
    for number in range(30):
        lab.clock.advance(1)
        lab.append(log, b"%d" % number * 10, leader_epoch=number // 10)
    log.set_high_watermark(20)
    log.truncate_to(offset)
    kept = min(offset, 30)
    assert log.log_end_offset == kept
    assert log.high_watermark == min(20, kept)
    assert len(lab.values(log)) == kept
    assert log.load().epochs.entries == [(e, s) for e, s in [(0, 0), (1, 10), (2, 20)] if s < kept]
    latest = log.max_timestamp_offset()
    assert (latest.offset if latest else -1) == kept - 1
    assert lab.append(log, b"new", leader_epoch=9) == kept
    log.load().release()
    again = lab.open(ReopenFacts(recovery_point=min(kept, 15)))
    assert lab.values(again)[-1] == b"new"
    assert again.log_end_offset == kept + 1


def test_truncating_into_a_batch_removes_it_whole(lab):
    log = lab.open()
    lab.append(log, b"a", b"b", b"c")
    lab.append(log, b"d", b"e", b"f")
    log.truncate_to(4)
    assert log.log_end_offset == 3


def test_starting_over_forgets_everything(lab):
    log = lab.open(segment_bytes=300)
    for _ in range(10):
        lab.append(log, b"x" * 50, leader_epoch=1)
    log.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1000, 1000, 1000)
    assert log.latest_epoch == -1
    assert lab.append(log, b"a", leader_epoch=2) == 1000
    log.load().release()
    again = lab.open(ReopenFacts(log_start_offset=1000))
    assert lab.values(again) == [b"a"]


def test_where_an_epoch_ended(lab):
    log = lab.open()
    for epoch, count in ((2, 3), (3, 2), (6, 4)):
        for _ in range(count):
            lab.append(log, b"x", leader_epoch=epoch)
    assert log.latest_epoch == 6
    assert log.end_offset_for(6) == (6, 9)
    assert log.end_offset_for(5) == (3, 5)
    assert log.end_offset_for(3) == (3, 5)
    assert log.end_offset_for(2) == (2, 3)
    assert log.end_offset_for(1) == (1, 0)
    assert log.end_offset_for(7) == (-1, -1)
    assert log.end_offset_for(-1) == (-1, -1)
    assert [log.epoch_for(offset) for offset in (0, 2, 3, 5, 100)] == [2, 2, 3, 6, 6]


def test_an_epoch_without_records_is_remembered_until_another_begins_there(lab):
    log = lab.open()
    lab.append(log, b"x", leader_epoch=1)
    log.begin_epoch(2)
    assert log.end_offset_for(1) == (1, 1)
    log.begin_epoch(3)
    assert log.load().epochs.entries == [(1, 0), (3, 1)]


def test_an_epoch_is_written_down_with_its_first_record(lab):
    log = lab.open()
    lab.append(log, b"x", leader_epoch=1)
    log.begin_epoch(2)
    path = Path(log.load().epochs.path)
    assert path.read_text() == "0\n1\n1 0\n"
    lab.append(log, b"y", leader_epoch=2)
    assert path.read_text() == "0\n2\n1 0\n2 1\n"


def test_epochs_follow_the_start_of_the_log(lab):
    log = lab.open()
    for epoch in (0, 1, 2):
        lab.append(log, b"a", leader_epoch=epoch)
        lab.append(log, b"b", leader_epoch=epoch)
    log.set_high_watermark(6)
    log.delete_records(3)
    assert log.load().epochs.entries == [(1, 3), (2, 4)]
    assert log.end_offset_for(0) == (0, 3)


def test_a_flush_that_a_truncation_overtook_does_not_move_the_recovery_point(lab):
    log = lab.open()
    for _ in range(5):
        lab.append(log, b"x")
    job = log.prepare_flush()
    log.truncate_to(2)
    for _ in range(3):
        lab.append(log, b"y")
    assert job.run() == 0
    assert log.flush() == 5
