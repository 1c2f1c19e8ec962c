"""A snapshot has only the last batch of each producer; retries of the last five are recognised all the same."""

from __future__ import annotations

import random

import pytest

from headrace.server.log import replay
from headrace.server.log.partition import PartitionLog, ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError

KEPT = 5


class Sent:
    """What every producer sent, and what a broker that never stopped would know of it."""

    def __init__(self, lab, chance: random.Random, producers: int) -> None:
        self.lab, self.chance = lab, chance
        self.epochs = dict.fromkeys(range(producers), 0)
        self.batches: dict[int, list[tuple[int, int, int]]] = {number: [] for number in range(producers)}

    def batch(self, producer_id: int, sequence: int, count: int) -> memoryview:
        return self.lab.batch(
            *(b"v" * self.chance.choice([1, 300]) for _ in range(count)),
            producer_id=producer_id,
            producer_epoch=self.epochs[producer_id],
            base_sequence=sequence,
        )

    def send(self, log: PartitionLog) -> None:
        producer_id = self.chance.randrange(len(self.batches))
        if self.chance.random() < 0.02:
            self.epochs[producer_id] += 1
            self.batches[producer_id] = []
        batches = self.batches[producer_id]
        sequence = batches[-1][0] + batches[-1][1] if batches else 0
        count = self.chance.randrange(1, 4)
        batch = self.batch(producer_id, sequence, count)
        offset = log.append_as_leader(batch, leader_epoch=0).first_offset
        batches.append((sequence, count, offset))

    def check_retries(self, log: PartitionLog) -> None:
        numbers = list(self.batches)
        self.chance.shuffle(numbers)
        for producer_id in numbers:
            batches = self.batches[producer_id]
            retries = list(enumerate(reversed(batches[-8:])))
            self.chance.shuffle(retries)
            for age, (sequence, count, offset) in retries:
                end = log.log_end_offset
                if age < KEPT:
                    again = log.append_as_leader(self.batch(producer_id, sequence, count), leader_epoch=0)
                    assert again.duplicate
                    assert (again.first_offset, again.last_offset) == (offset, offset + count - 1)
                else:
                    assert _refused(log, self.batch(producer_id, sequence, count))
                assert log.log_end_offset == end
            if batches:
                sequence, count, _ = batches[-1]
                assert _refused(log, self.batch(producer_id, sequence + count + 1, 1))
                assert _refused(log, self.batch(producer_id, sequence, count + 1))


def _refused(log: PartitionLog, batch: memoryview) -> bool:
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch, leader_epoch=0)
    return caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _stop_cleanly(log: PartitionLog) -> ReopenFacts:
    return log.close()


def _kill(log: PartitionLog) -> ReopenFacts:
    facts = ReopenFacts(recovery_point=log.recovery_point)
    log.load().release()
    return facts


@pytest.mark.parametrize("end", [_stop_cleanly, _kill], ids=["clean", "killed"])
@pytest.mark.parametrize("seed", range(6))
def test_the_last_five_batches_of_every_producer_are_recognised_after_each_restart(lab, seed, end):
    chance = random.Random(seed)
    settings = {
        "segment_bytes": chance.choice([900, 4_000, 1 << 20]),
        "index_interval_bytes": chance.choice([0, 200, 4096]),
    }
    log = lab.open(**settings)
    sent = Sent(lab, chance, producers=chance.choice([1, 3, 8]))
    for _ in range(4):
        for _ in range(chance.randrange(3, 60)):
            sent.send(log)
            if chance.random() < 0.1:
                log.prepare_flush(snapshot=True).run()
        facts = end(log)
        log = lab.open(facts, **settings)
        log.load()
        for _ in range(chance.randrange(0, 4)):
            sent.send(log)
        sent.check_retries(log)
    assert log.offline_reason is None


@pytest.mark.parametrize("seed", range(4))
def test_a_follower_that_was_restarted_and_becomes_leader_recognises_them(lab, seed):
    chance = random.Random(seed)
    leader = lab.open(segment_bytes=2_000, index_interval_bytes=200)
    follower = lab.open(name="f", segment_bytes=3_000, index_interval_bytes=200)
    sent = Sent(lab, chance, producers=3)
    for _ in range(3):
        for _ in range(30):
            sent.send(leader)
        while follower.log_end_offset < leader.log_end_offset:
            data = leader.read(follower.log_end_offset, 500).read()
            assert follower.append_as_follower(memoryview(bytearray(data))) is not None
        follower = lab.open(follower.close(), name="f", segment_bytes=3_000, index_interval_bytes=200)
    follower.load()
    sent.check_retries(follower)


@pytest.mark.parametrize("seed", range(4))
def test_they_are_recognised_after_a_truncation(lab, seed):
    chance = random.Random(seed)
    log = lab.open(segment_bytes=1_500, index_interval_bytes=200)
    sent = Sent(lab, chance, producers=3)
    for _ in range(60):
        sent.send(log)
    if any(sent.epochs.values()):
        sent.epochs = dict.fromkeys(sent.epochs, max(sent.epochs.values()) + 1)
        sent.batches = {number: [] for number in sent.batches}
        for number in sent.batches:
            offset = log.append_as_leader(sent.batch(number, 0, 1), leader_epoch=0).first_offset
            sent.batches[number].append((0, 1, offset))
    kept = log.log_end_offset
    before = {number: list(batches) for number, batches in sent.batches.items()}
    epochs = dict(sent.epochs)
    for _ in range(10):
        sent.send(log)
    log.truncate_to(kept)
    sent.batches, sent.epochs = before, epochs
    sent.check_retries(log)


def test_the_log_is_read_only_when_a_retry_is_not_found_and_only_a_part_of_it(lab, monkeypatch):
    looked_at = []
    found = replay.headers_before

    def counted(*arguments):
        for header in found(*arguments):
            looked_at.append(header)
            yield header

    monkeypatch.setattr(replay, "headers_before", counted)
    monkeypatch.setattr(replay, "MOST_HEADERS", 50)
    log = lab.open(index_interval_bytes=0)

    def send(producer_id: int, sequence: int):
        batch = lab.batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        return log.append_as_leader(batch, leader_epoch=0)

    for sequence in range(10):
        send(1, sequence)
    for sequence in range(200):
        send(2, sequence)
    log = lab.open(log.close())
    log.load()
    assert send(2, 199).duplicate
    assert send(2, 200).first_offset == 210
    assert looked_at == []
    assert send(2, 197).duplicate
    assert len(looked_at) <= KEPT
    looked_at.clear()
    assert send(2, 196).duplicate
    with pytest.raises(KafkaError):
        send(2, 190)
    assert looked_at == []
    for _ in range(2):
        with pytest.raises(KafkaError):
            send(1, 8)
    assert len(looked_at) <= 50
