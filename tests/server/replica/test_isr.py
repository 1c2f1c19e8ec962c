"""Which replicas are in sync: how fetches and the controller's answers change the ISR and the high watermark."""

import asyncio

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.replica.isr import IsrChanges
from headrace.server.replica.leadership import Leadership
from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

LONGEST = 10.0


def leadership(now=0.0):
    led = Leadership(PartitionState((1, 2, 3), (1, 2, 3), leader=1), 1, 0, now)
    for replica in (2, 3):
        led.followers[replica].fetched(0, 0, 1, now)
    return led


def test_the_first_record_after_a_quiet_time_finds_no_follower_late():
    led = leadership()
    heard = {2: 99.6, 3: 99.7}
    assert led.out_of_sync(0, 100.0, LONGEST, heard) == set()
    # Five seconds later a record has just been written, and no follower has fetched it yet.
    assert led.out_of_sync(1, 105.0, LONGEST, {2: 104.6, 3: 104.7}) == set()


def test_a_follower_that_stays_behind_or_silent_is_late():
    led = leadership()
    assert led.out_of_sync(0, 100.0, LONGEST, {2: 99.6, 3: 50.0}) == {3}
    led.followers[2].fetched(0, 1, 1, 101.0)
    assert led.out_of_sync(1, 105.0, LONGEST, {2: 104.9, 3: 50.0}) == {3}
    assert led.out_of_sync(1, 112.0, LONGEST, {2: 111.9, 3: 50.0}) == {2, 3}


async def test_a_follower_that_asks_outside_the_log_has_not_caught_up(make_partition):
    partition = make_partition("orders", replicas=(1, 2))
    partition.append(memoryview(bytearray(batch(b"a", b"b"))))
    partition.follower_fetched(2, 100, broker_epoch=1, now=1.0)
    assert partition.log.high_watermark == 0
    partition.follower_fetched(2, 1, broker_epoch=1, now=1.0)
    assert partition.log.high_watermark == 1


def test_a_follower_that_no_longer_asks_for_a_partition_is_late_though_it_is_heard_from():
    """It has named the partition once and everything in it; then its log failed, and others of its logs go on."""
    led = leadership()
    led.followers[2].left()
    assert led.out_of_sync(0, 100.0, LONGEST, {2: 99.9, 3: 99.9}) == {2}
    led.isr = frozenset({1, 3})
    assert not led.may_join(2, high_watermark=0)
    led.followers[2].fetched(0, 0, 1, 101.0)
    assert led.may_join(2, high_watermark=0)


async def test_a_failed_log_commits_nothing(make_partition):
    partition = make_partition("orders", replicas=(1, 2))
    partition.append(memoryview(bytearray(batch(b"a"))))
    partition.log.take_offline("a fault that a test put here")
    answers = []
    partition.when_committed(0, answers.append)
    partition.take_role(PartitionState((1, 2), (1,), leader=1, partition_epoch=1), 1, 1.0)
    assert answers == [], "the record may be lost"
    partition.log_failed()
    assert answers == [ErrorCode.KAFKA_STORAGE_ERROR]


async def test_a_log_that_failed_in_a_term_needs_another_to_come_back_in(make_partition):
    partition = make_partition("orders", replicas=(1, 2))
    partition.append(memoryview(bytearray(batch(b"a"))))
    partition.log.take_offline("a fault that a test put here")
    assert partition.needs_new_term
    with pytest.raises(KafkaError, match="a fault"):
        partition.take_role(PartitionState((1, 2), (1,), 1, leader_epoch=1, partition_epoch=1), 1, 1.0)
    assert not partition.needs_new_term
    partition.log.reopen()
    partition.log_returned()
    assert partition.end_offset_for_epoch(0) == (0, 1)
    partition.append(memoryview(bytearray(batch(b"b"))))
    assert partition.log.latest_epoch == 1
    partition.log.take_offline("another fault that a test put here")
    assert partition.needs_new_term


class Controller:
    """Gives the answers of the test, or breaks."""

    def __init__(self, partition, answers):
        self.partition = partition
        self.answers = iter(answers)
        self.asked = 0

    async def ask(self, request):
        self.asked += 1
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        data = ResponsePartitionData(0, answer, leader_id=1, leader_epoch=0, isr=[1, 2, 3], partition_epoch=1)
        return AlterPartitionResponse(topics=[ResponseTopicData(self.partition.topic_id, [data])])


@pytest.fixture
def shrunk(make_partition):
    """Led by 1, with 2 in sync and 3 about to come back."""

    def make(answers):
        partition = make_partition("orders", replicas=(1, 2, 3))
        partition.take_role(PartitionState((1, 2, 3), (1, 2), 1, 0, 0), 1, 0.0)
        partition.leadership = Leadership(PartitionState((1, 2, 3), (1, 2), leader=1), 1, 0, 0.0)
        controller = Controller(partition, answers)
        changes = IsrChanges(1, lambda: 1, controller.ask, SystemClock())
        return partition, controller, changes

    return make


async def answered(controller, changes, count):
    running = asyncio.ensure_future(changes.run())
    async with asyncio.timeout(30):
        while controller.asked < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_proposal_that_may_have_been_accepted_counts_until_the_image_tells(shrunk):
    """The first answer is lost; the second says that the partition has changed: 3 may be in the ISR already."""
    partition, controller, changes = shrunk([ConnectionError("lost"), ErrorCode.INVALID_UPDATE_VERSION])
    changes.propose(partition, frozenset({1, 2, 3}))
    await answered(controller, changes, 2)
    assert partition.leadership.maximal_isr == {1, 2, 3}
    partition.append(memoryview(bytearray(batch(b"a"))))
    partition.follower_fetched(2, 1, broker_epoch=1, now=1.0)
    assert partition.log.high_watermark == 0, "3 could be elected without this record"
    partition.take_role(PartitionState((1, 2, 3), (1, 2), 1, 0, partition_epoch=1), 1, 2.0)
    assert partition.log.high_watermark == 1


@pytest.mark.parametrize("refusal", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST])
async def test_a_refused_proposal_is_withdrawn(shrunk, refusal):
    partition, controller, changes = shrunk([refusal])
    changes.propose(partition, frozenset({1, 2, 3}))
    await answered(controller, changes, 1)
    assert partition.leadership.proposed is None
    assert partition.leadership.isr == {1, 2}


async def test_proposals_go_on_after_a_fault(shrunk):
    partition, controller, changes = shrunk([RuntimeError("a fault that a test put here"), ErrorCode.NONE])
    changes.propose(partition, frozenset({1, 2, 3}))
    await answered(controller, changes, 2)
    assert partition.leadership.isr == {1, 2, 3}


async def test_below_the_minimum_only_acknowledging_stops(make_partition):
    """docs/replication.md: min.insync.replicas is a condition on acks=all, not on the high watermark."""
    partition = make_partition("orders", replicas=(1, 2), min_insync_replicas="2")
    partition.take_role(PartitionState((1, 2), (1,), leader=1, partition_epoch=1), 1, 0.0)
    with pytest.raises(KafkaError, match="1 in-sync replicas"):
        partition.append(memoryview(bytearray(batch(b"all"))), acks=-1)
    partition.append(memoryview(bytearray(batch(b"one"))), acks=1)
    assert partition.log.high_watermark == 1


def test_a_follower_that_is_refused_every_time_does_not_keep_another_out():
    led = leadership()
    led.isr = frozenset({1})
    led.proposed = frozenset({1, 2})
    led.withdraw(now=7.0)
    assert led.followers[2].refused_at == 7.0
    assert led.followers[3].refused_at < 0
    assert led.may_join(3, high_watermark=0)
