"""Idempotent producers: sequences, retries, epochs, and what survives a restart."""

from __future__ import annotations

import os

import pytest

from headrace.server.log.partition import ReopenFacts
from headrace.server.log.producers import ProducerEntry
from headrace.server.log.snapshots import decode_snapshot, encode_snapshot
from headrace.wire.errors import ErrorCode, KafkaError

MAX = 2**31 - 1


class Producer:
    def __init__(self, lab, log, producer_id=7, epoch=0, **options):
        self.lab, self.log, self.id, self.epoch, self.options = lab, log, producer_id, epoch, options

    def send(self, sequence: int, count: int = 1):
        batch = self.lab.batch(
            *(b"v" for _ in range(count)),
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            **self.options,
        )
        return self.log.append_as_leader(batch, leader_epoch=0)

    def refused(self, sequence: int, count: int = 1) -> ErrorCode:
        end = self.log.log_end_offset
        with pytest.raises(KafkaError) as caught:
            self.send(sequence, count)
        assert self.log.log_end_offset == end
        return caught.value.code


def test_the_last_five_batches_are_answered_with_their_first_offsets(lab):
    producer = Producer(lab, lab.open())
    sent = [producer.send(number * 3, 3) for number in range(7)]
    for number in range(2, 7):
        again = producer.send(number * 3, 3)
        assert again.duplicate
        assert (again.first_offset, again.last_offset) == (
            sent[number].first_offset,
            sent[number].last_offset,
        )
    for number in (0, 1):
        assert producer.refused(number * 3, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.log.log_end_offset == 21


def test_a_gap_or_a_part_of_a_batch_is_out_of_order(lab):
    producer = Producer(lab, lab.open())
    producer.send(0, 3)
    for sequence, count in ((4, 1), (2, 1), (1, 2), (0, 2), (0, 4)):
        assert producer.refused(sequence, count) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.send(3)


def test_sequences_begin_again_at_zero_after_the_largest(lab):
    producer = Producer(lab, lab.open())
    producer.send(MAX - 1, 4)
    assert producer.send(MAX - 1, 4).duplicate
    assert producer.refused(1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.send(2)
    other = Producer(lab, producer.log, producer_id=8)
    other.send(MAX)
    other.send(0)


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero(lab):
    log = lab.open()
    Producer(lab, log, epoch=1).send(0)
    assert Producer(lab, log, epoch=0).refused(1) == ErrorCode.INVALID_PRODUCER_EPOCH
    newer = Producer(lab, log, epoch=2)
    assert newer.refused(5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    newer.send(0)
    assert Producer(lab, log, epoch=1).refused(1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_may_begin_anywhere(lab):
    Producer(lab, lab.open()).send(12345)


def test_two_producers_do_not_disturb_each_other(lab):
    log = lab.open()
    first, second = Producer(lab, log, 1), Producer(lab, log, 2)
    first.send(0)
    second.send(0)
    first.send(1)
    assert second.send(0).duplicate
    second.send(1)
    assert sorted(entry.producer_id for entry in log.active_producers) == [1, 2]


@pytest.mark.parametrize("how", ["clean", "crash", "crash after a flush", "snapshots damaged"])
def test_retries_are_recognised_after_a_restart(lab, how):
    log = lab.open(segment_bytes=600)
    producer = Producer(lab, log)
    for sequence in range(20):
        producer.send(sequence)
    if how == "clean":
        facts = log.close()
    else:
        if how == "crash after a flush":
            log.prepare_flush(snapshot=True).run()
            producer.send(20)
            producer.send(21)
        facts = ReopenFacts(recovery_point=log.recovery_point)
        log.load().release()
    if how == "snapshots damaged":
        for name in os.listdir(log.directory):
            if name.endswith(".snapshot"):
                with open(os.path.join(log.directory, name), "r+b") as file:
                    file.write(b"\x00\x01\xff")
    producer.log = log = lab.open(facts, segment_bytes=600)
    last = 21 if how == "crash after a flush" else 19
    again = producer.send(last)
    assert again.duplicate
    assert again.first_offset == last
    assert producer.refused(last + 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.send(last + 1)


def test_a_silent_producer_is_forgotten_after_its_expiration(lab):
    log = lab.open()
    producer = Producer(lab, log)
    producer.send(0)
    lab.clock.advance(86_399_999)
    log.expire_producers()
    assert len(log.active_producers) == 1
    lab.clock.advance(1)
    log.expire_producers()
    assert log.active_producers == []
    producer.send(99)


def test_truncation_takes_producers_back_with_the_log(lab):
    log = lab.open(segment_bytes=600)
    producer = Producer(lab, log)
    for sequence in range(20):
        producer.send(sequence)
    log.truncate_to(12)
    assert log.log_end_offset == 12
    assert producer.refused(13) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(11).duplicate
    assert producer.send(12).first_offset == 12
    log.truncate_fully_and_start_at(100)
    assert log.active_producers == []
    assert producer.send(0).first_offset == 100


def test_a_snapshot_has_kafkas_layout_and_is_read_back(lab):
    entry = ProducerEntry(7, 2, 5, 1234, 99)
    Producer(lab, log := lab.open(), producer_id=3).send(10, 4)
    entries = [entry, *log.active_producers]
    data = encode_snapshot(entries)
    assert data[:2] == b"\x00\x01"
    assert len(data) == 10 + 2 * 46
    assert decode_snapshot(data) == entries
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(bytes(damaged))
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(data[:position])


def test_snapshots_stay_with_their_segments(lab):
    log = lab.open(segment_bytes=300, retention_bytes=700)
    producer = Producer(lab, log)
    for sequence in range(20):
        producer.send(sequence)
    log.set_high_watermark(20)
    log.delete_old_segments()
    log.close()
    names = os.listdir(log.directory)
    bases = {name[:20] for name in names if name.endswith(".log")}
    snapshots = {name[:20] for name in names if name.endswith(".snapshot")}
    assert snapshots == bases | {f"{20:020d}"}
