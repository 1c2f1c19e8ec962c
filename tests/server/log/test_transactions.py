"""Open transactions hold back the last stable offset; reads find the aborted ones they touch."""

from __future__ import annotations

import pytest

from headrace.server.log.partition import AppendOrigin, ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import build_end_transaction_marker


class Transactions:
    """Writes as transactional producers and their coordinator do."""

    def __init__(self, lab, log):
        self.lab, self.log = lab, log
        self.sequences: dict[int, int] = {}

    def write(self, producer_id: int, epoch: int = 0, guard=None) -> int:
        sequence = self.sequences.get(producer_id, 0)
        batch = self.lab.batch(
            b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True
        )
        offset = self.log.append_as_leader(batch, leader_epoch=0, guard=guard).first_offset
        self.sequences[producer_id] = sequence + 1
        return offset

    def end(self, producer_id: int, *, committed: bool, epoch: int = 0, coordinator_epoch: int = 0) -> int:
        marker = build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            committed=committed,
            timestamp=self.lab.clock.now_ms(),
        )
        result = self.log.append_as_leader(
            memoryview(marker), leader_epoch=0, origin=AppendOrigin.COORDINATOR
        )
        return result.first_offset


@pytest.fixture
def work(lab):
    log = lab.open()
    log.load()
    return Transactions(lab, log)


def test_the_last_stable_offset_waits_for_the_first_open_transaction(work):
    log = work.log
    work.lab.append(log, b"plain")
    work.write(1)
    work.write(2)
    work.lab.append(log, b"plain")
    log.set_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 1
    work.end(1, committed=True)
    log.set_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 2
    work.end(2, committed=False)
    assert log.last_stable_offset == 2, "the marker is not below the high watermark yet"
    log.set_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset == 6


def test_the_last_stable_offset_is_never_above_the_high_watermark(work):
    work.write(1)
    work.end(1, committed=True)
    assert work.log.last_stable_offset == 0
    work.log.set_high_watermark(1)
    assert work.log.last_stable_offset == 0
    work.log.set_high_watermark(2)
    assert work.log.last_stable_offset == 2


def test_aborted_transactions_are_found_by_the_offsets_they_touch(work):
    work.write(1)  # 0
    work.write(2)  # 1
    work.end(2, committed=False)  # 2
    work.lab.append(work.log, b"plain")  # 3
    work.end(1, committed=False)  # 4
    work.write(3)  # 5
    work.end(3, committed=True)  # 6
    work.write(1)  # 7
    work.end(1, committed=False)  # 8

    def found(first, last):
        return [
            (t.producer_id, t.first_offset, t.last_offset) for t in work.log.aborted_transactions(first, last)
        ]

    assert found(0, 9) == [(2, 1, 2), (1, 0, 4), (1, 7, 8)]
    assert found(3, 5) == [(1, 0, 4)]
    assert found(5, 7) == []
    assert found(8, 9) == [(1, 7, 8)]
    assert found(0, 1) == [(1, 0, 4)]


@pytest.mark.parametrize("how", ["clean", "crash"])
def test_transactions_survive_a_restart(lab, how):
    log = lab.open(segment_bytes=500)
    work = Transactions(lab, log)
    for producer_id in (1, 2, 3):
        work.write(producer_id)
    work.end(1, committed=False)
    for _ in range(10):
        lab.append(log, b"plain" * 10)
    work.end(2, committed=False)
    work.write(1)
    aborted = log.aborted_transactions(0, 100)
    assert len(aborted) == 2
    log.set_high_watermark(log.log_end_offset)
    if how == "clean":
        facts = log.close()
    else:
        log.load().release()
        facts = ReopenFacts(high_watermark=log.high_watermark)
    again = lab.open(facts, segment_bytes=500)
    again.load()
    again.set_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == 2
    assert again.aborted_transactions(0, 100) == aborted
    work.log = again
    work.end(3, committed=True)
    again.set_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == log.log_end_offset - 1


def test_what_was_stable_before_a_crash_is_stable_after_it_though_nothing_moves_the_high_watermark(lab):
    log = lab.open()
    work = Transactions(lab, log)
    work.write(1)
    work.end(1, committed=True)
    high_watermark = log.log_end_offset
    work.write(2)
    work.end(2, committed=True)
    log.load().release()
    again = lab.open(ReopenFacts(high_watermark=high_watermark))
    again.load()
    assert again.last_stable_offset == high_watermark == 2


def test_a_garbled_transaction_index_is_rebuilt_after_a_crash(lab):
    log = lab.open()
    work = Transactions(lab, log)
    for _ in range(3):
        work.write(1)
        work.end(1, committed=False)
    aborted = log.aborted_transactions(0, 100)
    path = log.load().active.path(".txnindex")
    log.load().release()
    for damage in (b"", b"\xff" * 34, b"\x00" * 102, b"\x00" * 50):
        with open(path, "wb") as file:
            file.write(damage)
        again = lab.open()
        assert again.aborted_transactions(0, 100) == aborted
        again.load().release()


def test_truncation_forgets_aborted_transactions_and_reopens_others(lab):
    log = lab.open()
    work = Transactions(lab, log)
    work.write(1)  # 0
    work.end(1, committed=False)  # 1
    work.write(1)  # 2
    work.end(1, committed=False)  # 3
    log.truncate_to(3)
    assert [t.last_offset for t in log.aborted_transactions(0, 10)] == [1]
    log.set_high_watermark(3)
    assert log.last_stable_offset == 2
    work.end(1, committed=True)
    log.set_high_watermark(4)
    assert log.last_stable_offset == 4


def test_a_marker_from_a_deposed_coordinator_or_an_older_producer_is_fenced(work):
    work.write(1, epoch=3)
    work.end(1, committed=True, epoch=3, coordinator_epoch=5)
    with pytest.raises(KafkaError) as caught:
        work.end(1, committed=True, epoch=3, coordinator_epoch=4)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(KafkaError) as caught:
        work.end(1, committed=True, epoch=2, coordinator_epoch=5)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_that_raises_the_epoch_fences_the_old_one_and_begins_at_zero(work):
    work.write(1, epoch=0)
    work.end(1, committed=False, epoch=1)
    with pytest.raises(KafkaError) as caught:
        work.write(1, epoch=0)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    work.sequences[1] = 0
    work.write(1, epoch=1)


def test_a_batch_outside_the_open_transaction_is_refused(work):
    work.write(1)
    batch = work.lab.batch(b"v", producer_id=1, producer_epoch=0, base_sequence=1)
    with pytest.raises(KafkaError) as caught:
        work.log.append_as_leader(batch, leader_epoch=0)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE


def test_an_open_transaction_keeps_its_producer_from_expiring(work):
    work.write(1)
    work.lab.clock.advance(10**9)
    work.log.expire_producers()
    assert work.log.has_ongoing_transaction(1, 0)


def test_with_verification_a_client_needs_its_coordinators_word(work):
    work.lab.environment.transaction_verification = True
    with pytest.raises(KafkaError) as caught:
        work.write(1)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    guard = work.log.start_verification(1, 0, 0)
    assert guard is not None
    work.write(1, guard=guard)
    assert work.log.start_verification(1, 1, 0) is None
    work.write(1)
    work.end(1, committed=True)
    with pytest.raises(KafkaError):
        work.write(1, guard=guard)


def test_a_marker_takes_the_guard_of_a_late_request_away(work):
    """A request that was verified before its transaction ended must not begin another one unseen."""
    work.lab.environment.transaction_verification = True
    guard = work.log.start_verification(1, 0, 0)
    work.end(1, committed=False)
    with pytest.raises(KafkaError) as caught:
        work.write(1, guard=guard)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE


def test_while_verifying_an_out_of_order_first_batch_is_refused(work):
    work.lab.environment.transaction_verification = True
    guard = work.log.start_verification(1, 0, 0)
    work.log.start_verification(1, 1, 0)
    work.sequences[1] = 1
    with pytest.raises(KafkaError) as caught:
        work.write(1, guard=guard)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_follower_learns_transactions_from_the_batches(lab):
    leader = lab.open(name="leader")
    work = Transactions(lab, leader)
    work.write(1)
    work.end(1, committed=False)
    work.write(2)
    follower = lab.open(name="follower")
    follower.append_as_follower(memoryview(bytearray(leader.read(0, 1 << 20).read())))
    follower.set_high_watermark(3)
    assert follower.last_stable_offset == 2
    assert follower.aborted_transactions(0, 3) == leader.aborted_transactions(0, 3)
