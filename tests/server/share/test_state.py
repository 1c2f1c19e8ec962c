"""The share coordinator's state: epochs that fence, updates and snapshots, and a log that stays short."""

from __future__ import annotations

import asyncio
import itertools
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.server.replica.turn import Turn
from headrace.server.share.coordinator.combining import combine
from headrace.server.share.coordinator.coordinator import (
    ShareCoordinator,
    ShareCoordinatorConfig,
    coordinator_key,
)
from headrace.server.share.coordinator.records import (
    ShareKey,
    ShareRecord,
    Snapshot,
    Update,
    decode_record,
    encode_record,
)
from headrace.server.share.coordinator.state import StoredState
from headrace.server.share.states import RecordState, StateBatch
from headrace.wire.errors import ErrorCode, KafkaError
from tests.server.groups.conftest import ManualClock, MemoryLog

TOPIC = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
KEY = ShareKey("g", TOPIC, 0)
ACKED, AVAILABLE = int(RecordState.ACKNOWLEDGED), int(RecordState.AVAILABLE)


class Topics:
    def __init__(self) -> None:
        self.gone = False

    def has_partition(self, topic_id: uuid.UUID, partition: int) -> bool:
        return topic_id == TOPIC and partition < 3 and not self.gone


class Shares:
    """One share coordinator over a log in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = MemoryLog()
        self.topics = Topics()
        self.pruned: list[int] = []
        self.start()

    def start(self) -> None:
        config = ShareCoordinatorConfig(updates_per_snapshot=3)
        self.coordinator = ShareCoordinator(config, self.clock, self.topics, Turn(), lambda: 1)
        self.coordinator.lead(0, self.log, self.pruned.append)

    async def restart(self) -> None:
        self.coordinator.close()
        self.start()
        for _ in range(100):  # turns of the loop in which it replays its log
            await asyncio.sleep(0)

    async def write(
        self,
        *batches: StateBatch,
        start: int = -1,
        leader_epoch: int = 1,
        state_epoch: int = 5,
        complete: int = 0,
    ) -> None:
        await self.coordinator.write(KEY, state_epoch, leader_epoch, start, complete, batches)


@pytest.fixture
async def shares() -> Shares:
    made = Shares()
    await made.coordinator.initialize(KEY, 5, -1)
    return made


def test_a_record_reads_back_as_it_was_written() -> None:
    batches = (StateBatch(3, 4, ACKED, 1), StateBatch(7, 7, AVAILABLE, 2))
    for value in (Snapshot(1, 2, 3, 4, 5, batches, 6, 7), Update(1, 3, -1, 5, batches)):
        record = ShareRecord(KEY, value, kind=1 if isinstance(value, Update) else 0)
        key, encoded = encode_record(record)
        assert encoded is not None
        assert decode_record(bytes(key), bytes(encoded)) == record


def test_bytes_are_those_that_kafka_writes() -> None:
    """Of Kafka 4.3's ShareCoordinatorRecordSerde, written down once."""
    key, value = encode_record(ShareRecord(KEY, Snapshot(1, 2, 3, 4, 5, (StateBatch(4, 6, 2, 1),), 6, 7)))
    assert bytes(key).hex() == "0000" + "000167" + "0123456789abcdef0123456789abcdef" + "00000000"
    assert value is not None
    assert bytes(value).hex() == (
        "0000" + "00000001" + "00000002" + "00000003" + "0000000000000004" + "0000000000000006"
        "0000000000000007" + "02" + "0000000000000004" + "0000000000000006" + "02" + "0001" + "00"
        "01" + "00" + "04" + "00000005"
    )


def test_the_key_is_hashed_as_kafka_hashes_it() -> None:
    assert coordinator_key(KEY) == "g:ASNFZ4mrze8BI0VniavN7w:0"


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 6), st.sampled_from([0, 2, 4]), st.integers(0, 3)),
        max_size=12,
    ),
    st.integers(0, 20),
)
def test_what_was_written_last_counts(written: list[tuple[int, int, int, int]], start: int) -> None:
    batches = [StateBatch(first, first + size, state, count) for first, size, state, count in written]
    half = len(batches) // 2
    combined = combine(combine((), batches[:half], 0), batches[half:], start)
    expected = {
        offset: (batch.state, batch.deliveries)
        for batch in batches
        for offset in range(batch.first, batch.last + 1)
        if offset >= start
    }
    found = {
        offset: (batch.state, batch.deliveries)
        for batch in combined
        for offset in range(batch.first, batch.last + 1)
    }
    assert found == expected
    assert all(one.last < other.first for one, other in itertools.pairwise(combined))


async def test_a_new_leader_reads_what_the_last_one_has_stored(shares: Shares) -> None:
    assert await shares.coordinator.read(KEY, 1) == StoredState(5, -1, ())
    await shares.write(StateBatch(0, 9, ACKED, 1), start=0)
    await shares.write(StateBatch(10, 12, AVAILABLE, 2), start=10)
    await shares.restart()
    assert await shares.coordinator.read(KEY, 2) == StoredState(5, 10, (StateBatch(10, 12, AVAILABLE, 2),))


async def test_updates_become_a_snapshot_now_and_then_and_the_log_before_it_can_go(shares: Shares) -> None:
    for offset in range(7):
        await shares.write(StateBatch(offset, offset, ACKED, 1), start=offset + 1)
    shares.clock.advance(301)
    assert shares.pruned, "nothing older than the newest snapshot is needed"
    assert shares.log.start_offset == 0
    shares.log.batches = [
        each for each in shares.log.batches if shares.log.batches.index(each) >= shares.pruned[-1]
    ]
    shares.log.start_offset = shares.pruned[-1]
    await shares.restart()
    assert (await shares.coordinator.read(KEY, 1)).start_offset == 7


async def test_the_log_before_a_snapshot_stays_until_the_snapshot_is_committed(shares: Shares) -> None:
    await shares.write(StateBatch(0, 0, ACKED, 1), start=1)
    await shares.write(StateBatch(1, 1, ACKED, 1), start=2)
    shares.clock.advance(299)
    shares.log.hold = True
    anew = shares.coordinator.initialize(KEY, 6, 0)
    await asyncio.sleep(0.01)
    shares.clock.advance(2)
    assert shares.pruned == [], "a leader that does not have it would have nothing"
    shares.log.commit()
    await anew
    assert shares.pruned == [3]


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_old_leader_is_refused_from_the_moment_a_new_one_has_read(
    shares: Shares, restarted: bool
) -> None:
    await shares.write(StateBatch(0, 0, ACKED, 1), start=0, leader_epoch=1)
    await shares.coordinator.read(KEY, 2)
    if restarted:
        await shares.restart()
    with pytest.raises(KafkaError) as refused:
        await shares.write(StateBatch(1, 1, ACKED, 1), leader_epoch=1)
    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(KafkaError):
        await shares.coordinator.read(KEY, 1)


async def test_a_leader_that_has_not_heard_of_a_reset_is_refused(shares: Shares) -> None:
    await shares.write(StateBatch(0, 9, ACKED, 1), start=10)
    await shares.coordinator.initialize(KEY, 6, 3)
    with pytest.raises(KafkaError) as refused:
        await shares.write(StateBatch(10, 10, ACKED, 1))
    assert refused.value.code is ErrorCode.FENCED_STATE_EPOCH
    assert await shares.coordinator.read(KEY, 1) == StoredState(6, 3, ())
    with pytest.raises(KafkaError):
        await shares.coordinator.initialize(KEY, 5, 0)


async def test_what_was_never_initialized_or_is_deleted_cannot_be_read(shares: Shares) -> None:
    with pytest.raises(KafkaError) as refused:
        await shares.coordinator.read(KEY._replace(partition=1), 0)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    await shares.coordinator.delete(KEY)
    await shares.restart()
    assert (await shares.coordinator.summary(KEY, -1)).start_offset == -1
    with pytest.raises(KafkaError):
        await shares.write(StateBatch(0, 0, ACKED, 1))


async def test_the_state_of_a_deleted_topic_goes_with_it(shares: Shares) -> None:
    shares.topics.gone = True
    shares.coordinator.topics_deleted()
    shares.topics.gone = False
    assert (await shares.coordinator.summary(KEY, -1)).start_offset == -1


async def test_the_summary_counts_what_is_done_with_behind_the_start(shares: Shares) -> None:
    await shares.write(StateBatch(5, 6, ACKED, 1), start=0, complete=2)
    summary = await shares.coordinator.summary(KEY, -1)
    assert (summary.start_offset, summary.complete_count, summary.leader_epoch) == (0, 2, 1)


async def test_a_state_that_is_not_replicated_is_not_confirmed(shares: Shares) -> None:
    shares.log.hold = True
    written = shares.coordinator.write(KEY, 5, 1, 0, 0, [StateBatch(0, 0, ACKED, 1)])
    await asyncio.sleep(0.01)
    assert not written.done()
    shares.log.commit()
    await written
