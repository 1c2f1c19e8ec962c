"""The transaction coordinator over real logs, without a broker around it."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster.image import MetadataImage, Partition, Topic
from headrace.server.cluster.internal_topics import TRANSACTION_STATE
from headrace.server.coordinator import runtime as runtime_module
from headrace.server.coordinator.leader_log import LeaderLog
from headrace.server.log.partition import PartitionLog
from headrace.server.replica.turn import Turn
from headrace.server.transactions import coordinator as coordinator_module
from headrace.server.transactions import rules
from headrace.server.transactions.coordinator import TransactionConfig, TransactionCoordinator
from headrace.server.transactions.enlisting import Enlisting
from headrace.server.transactions.metadata import LAST_EPOCH, Status, Transaction
from headrace.testing.clock import MovableClock
from headrace.wire.batch import iterate_batches
from headrace.wire.errors import ErrorCode, KafkaError

NOBODY = (-1, -1)


class Harness:
    """A coordinator that leads two partitions of `__transaction_state`, whose markers arrive when the test says so."""

    def __init__(self, make_partition, disk):
        self.clock = MovableClock()
        self.disk = disk
        self.markers_arrive = asyncio.Event()
        self.markers_arrive.set()
        self.ids = iter(range(1000, 2000))
        # What is written to partition 0 is only committed when a thread has brought it to the disk.
        future = {"message_timestamp_after_max_ms": str(2**62)}
        self.partitions = [
            make_partition(TRANSACTION_STATE, 0, flush_messages="1", **future),
            make_partition(TRANSACTION_STATE, 1, **future),
        ]
        config = TransactionConfig(2, 900_000, 10_000, 604_800_000, 3_600_000, 5_000)
        self.coordinator = TransactionCoordinator(
            config, self.clock, lambda: 2, self._next_id, self._send_markers, Turn()
        )

    async def _next_id(self):
        return next(self.ids)

    async def _send_markers(self, transaction, epoch):
        await self.markers_arrive.wait()

    async def lead(self, index):
        self.coordinator.lead(index, LeaderLog(self.partitions[index], self.disk), 0)
        await self.until(lambda: not self.coordinator._runtime._loads)

    async def until(self, condition):
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    def name_in(self, index, start=0):
        """A transactional id that this partition owns."""
        return next(
            f"tx-{n}" for n in range(start, start + 99) if self.coordinator.partition_for(f"tx-{n}") == index
        )

    async def open_transaction(self, name, timeout_ms=60_000):
        producer = await self.coordinator.init_producer_id(name, timeout_ms, NOBODY)
        await self.coordinator.add_partitions(name, *producer, [("orders", 0)])
        return producer


@pytest.fixture
async def harness(make_partition):
    with ThreadPoolExecutor(2) as disk:
        harness = Harness(make_partition, disk)
        await harness.lead(0)
        await harness.lead(1)
        yield harness
        harness.coordinator.close()


async def test_overdue_transactions_are_aborted_although_a_partition_is_handed_over_meanwhile(harness):
    names = [harness.name_in(0), harness.name_in(1)]
    for name in names:
        await harness.open_transaction(name)
    harness.clock.advance(120)
    aborting = asyncio.ensure_future(harness.coordinator.abort_overdue())
    await asyncio.sleep(0)
    harness.coordinator.resign(1)
    await aborting
    await harness.until(lambda: harness.coordinator.describe(names[0]).status is Status.COMPLETE_ABORT)


async def unconfirmed(harness, step):
    """Run a step whose record is written, and committed only after its time is over."""
    log = harness.partitions[0].log
    end = log.log_end_offset
    task = asyncio.ensure_future(step)
    while log.log_end_offset == end:  # noqa: ASYNC110  a turn of the loop is too short for the disk
        await asyncio.sleep(0)
    harness.clock.advance(6)
    with pytest.raises(KafkaError) as refused:
        await task
    return refused.value.code


@pytest.mark.parametrize("version", [0, 2])
async def test_a_decision_that_is_confirmed_too_late_is_carried_out_all_the_same(harness, version):
    name = harness.name_in(0)
    producer = await harness.open_transaction(name)
    ending = harness.coordinator.end(name, *producer, True, version)
    assert await unconfirmed(harness, ending) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    await harness.until(lambda: harness.coordinator.describe(name).status is Status.COMPLETE_COMMIT)
    await harness.coordinator.end(name, *producer, True, version)  # asked again, as clients do


async def test_a_producer_whose_successor_was_not_confirmed_in_time_is_fenced_all_the_same(harness):
    name = harness.name_in(0)
    await harness.open_transaction(name)
    taking_over = harness.coordinator.init_producer_id(name, 60_000, NOBODY)
    assert await unconfirmed(harness, taking_over) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    await harness.until(lambda: harness.coordinator.describe(name).status is Status.COMPLETE_ABORT)


async def test_a_partition_this_broker_has_not_heard_of_waits_for_its_turn(harness):
    name = harness.name_in(0)
    producer = await harness.coordinator.init_producer_id(name, 60_000, NOBODY)
    image = MetadataImage(topics={"old": Topic("old", uuid.uuid4(), (Partition((1,), (1,), 1),))})
    enlisting = Enlisting(1, lambda: image, harness.coordinator, None, harness.clock)
    answers = await enlisting.ask_here(name, *producer, [("old", 0), ("new", 0)], verify_only=False)
    assert answers == {("old", 0): ErrorCode.NONE, ("new", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert harness.coordinator.describe(name).partitions == {("old", 0)}


@pytest.mark.sources("Enlisting.ask")
async def test_a_coordinator_elsewhere_that_still_ends_a_transaction_is_asked_for_as_long_as_is_set(
    harness, monkeypatch
):
    asked = []

    async def still_ending(self, *args):
        asked.append(args)
        return {("t", 0): ErrorCode.CONCURRENT_TRANSACTIONS}

    monkeypatch.setattr(Enlisting, "ask", still_ending)
    enlisting = Enlisting(
        1, MetadataImage, harness.coordinator, None, SystemClock(), backoff_ms=3, longest_backoff_ms=9
    )
    answers = await enlisting.ask_in_time("tx", True, lambda: {(1, 0): [("t", 0)]})
    assert answers == {("t", 0): ErrorCode.CONCURRENT_TRANSACTIONS}
    assert len(asked) == 3


async def test_an_id_that_is_used_again_while_others_are_forgotten_stays(harness, monkeypatch):
    monkeypatch.setattr(coordinator_module, "FORGOTTEN_AT_ONCE", 1)
    first, second = harness.name_in(0), harness.name_in(0, 100)
    for name in (first, second):
        await harness.coordinator.init_producer_id(name, 60_000, NOBODY)
    harness.clock.advance(8 * 24 * 3600)
    forgetting = asyncio.ensure_future(harness.coordinator.forget_expired())
    await asyncio.sleep(0)
    await harness.coordinator.init_producer_id(second, 60_000, NOBODY)
    await forgetting
    assert harness.coordinator.describe(second).producer_epoch == 1
    with pytest.raises(KafkaError) as refused:
        harness.coordinator.describe(first)
    assert refused.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.sources("PartitionLog.append_as_leader")
async def test_a_decided_transaction_is_completed_once_a_full_disk_has_room_again(harness, monkeypatch):
    name = harness.name_in(1)
    producer = await harness.open_transaction(name)
    harness.markers_arrive.clear()
    await harness.coordinator.end(name, *producer, commit=True, client_version=2)
    refused = asyncio.Event()

    def full(*args, **kwargs):
        refused.set()
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No room is left on the disk.")

    with monkeypatch.context() as patched:
        patched.setattr(PartitionLog, "append_as_leader", full)
        harness.markers_arrive.set()
        await refused.wait()
        await asyncio.sleep(0)
    await harness.until(lambda: harness.coordinator.describe(name).status is Status.COMPLETE_COMMIT)


def initialise(transaction, expected):
    return rules.initialise(transaction, "tx", 60_000, expected, fresh_id=9, now_ms=1)


def test_a_producer_whose_id_was_forgotten_gets_a_new_one():
    started = initialise(None, (7, 3))
    assert (started.producer_id, started.producer_epoch) == (9, 0)


def test_a_zombie_from_before_the_id_was_exchanged_does_not_fence_the_owner():
    exhausted = Transaction("tx", 7, LAST_EPOCH - 1, 60_000)
    exchanged = initialise(exhausted, (7, LAST_EPOCH - 1))
    assert (exchanged.producer_id, exchanged.producer_epoch) == (9, 0)
    # The same request again gets the same answer; an older epoch of the old id gets none.
    assert initialise(exchanged, (7, LAST_EPOCH - 1)) is exchanged
    with pytest.raises(KafkaError) as refused:
        initialise(exchanged, (7, 3))
    assert refused.value.code is ErrorCode.PRODUCER_FENCED


def test_a_zombie_with_the_previous_id_is_not_taken_for_the_owner_by_a_chance_epoch():
    owned = Transaction("tx", 9, 4, 60_000, previous_producer_id=7, last_epoch=3)
    assert initialise(owned, (9, 3)) is owned
    with pytest.raises(KafkaError) as refused:
        initialise(owned, (7, 3))
    assert refused.value.code is ErrorCode.PRODUCER_FENCED


def test_only_the_last_epoch_of_the_previous_id_is_told_how_its_transaction_ended():
    ended = Transaction("tx", 9, 0, 60_000, Status.COMPLETE_COMMIT, previous_producer_id=7)

    def end(epoch):
        return rules.end(ended, 7, epoch, commit=True, client_version=2, fresh_id=-1, now_ms=1)

    assert end(LAST_EPOCH - 1) is ended
    with pytest.raises(KafkaError) as refused:
        end(3)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def refusal(step):
    with pytest.raises(KafkaError) as refused:
        await step
    return refused.value.code


async def test_while_a_transaction_is_ended_the_abort_of_the_next_one_waits(harness):
    name = harness.name_in(1)
    producer = await harness.open_transaction(name)
    harness.markers_arrive.clear()
    following = await harness.coordinator.end(name, *producer, commit=True, client_version=2)
    aborting = harness.coordinator.end(name, *following, commit=False, client_version=2)
    assert await refusal(aborting) is ErrorCode.CONCURRENT_TRANSACTIONS
    harness.markers_arrive.set()
    assert await harness.coordinator.end(name, *following, commit=False, client_version=2) == (
        following[0],
        following[1] + 1,
    )


async def test_a_producer_with_a_new_id_waits_until_its_last_transaction_has_ended_under_the_old(harness):
    name = harness.name_in(1)
    last = (7, LAST_EPOCH - 1)
    coordinator = harness.coordinator
    coordinator._shard(name).state.transactions[name] = Transaction(name, *last, 60_000)
    await coordinator.add_partitions(name, *last, [("orders", 0)], client_version=2)
    harness.markers_arrive.clear()
    renewed = await coordinator.end(name, *last, commit=True, client_version=2)
    assert renewed[0] != 7
    assert renewed[1] == 0
    for early in (
        coordinator.add_partitions(name, *renewed, [("orders", 0)], client_version=2),
        coordinator.end(name, *renewed, commit=False, client_version=2),
        coordinator.init_producer_id(name, 60_000, renewed),
    ):
        assert await refusal(early) is ErrorCode.CONCURRENT_TRANSACTIONS
    harness.markers_arrive.set()
    await harness.until(lambda: coordinator.describe(name).status is Status.COMPLETE_COMMIT)
    await coordinator.add_partitions(name, *renewed, [("orders", 0)], client_version=2)


async def test_a_producer_whose_open_transaction_it_aborts_itself_by_starting_again_goes_on(harness):
    name = harness.name_in(1)
    producer_id, epoch = await harness.open_transaction(name)
    again = (name, 60_000, (producer_id, epoch))
    assert await refusal(harness.coordinator.init_producer_id(*again)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert await harness.coordinator.init_producer_id(*again) == (producer_id, epoch + 1)
    assert harness.coordinator.describe(name).status is Status.EMPTY


async def test_nothing_is_kept_under_an_empty_transactional_id(harness):
    coordinator = harness.coordinator
    for asked in (
        coordinator.init_producer_id("", 60_000, NOBODY),
        coordinator.add_partitions("", 7, 0, [("orders", 0)]),
        coordinator.end("", 7, 0, commit=True, client_version=2),
    ):
        assert await refusal(asked) is ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError) as refused:
        coordinator.describe("")
    assert refused.value.code is ErrorCode.INVALID_REQUEST


async def test_a_partition_that_could_not_be_read_is_loaded_when_it_can(harness, monkeypatch):
    name = harness.name_in(1)
    await harness.coordinator.init_producer_id(name, 60_000, NOBODY)
    monkeypatch.setattr(runtime_module, "LOAD_RETRY_SECONDS", 0.01)
    read, tries = LeaderLog.read, []

    async def broken_once(self, *args):
        tries.append(1)
        if len(tries) == 1:
            raise OSError("a fault that a test put here")
        return await read(self, *args)

    monkeypatch.setattr(LeaderLog, "read", broken_once)
    await harness.lead(1)
    assert harness.coordinator.describe(name).status is Status.EMPTY


async def test_steps_of_different_transactions_share_one_batch(harness):
    names = [harness.name_in(1, start) for start in (0, 100, 200)]
    producers = [await harness.coordinator.init_producer_id(name, 60_000, NOBODY) for name in names]
    log = harness.partitions[1].log
    end = log.log_end_offset
    await asyncio.gather(
        *(
            harness.coordinator.add_partitions(name, *producer, [("orders", 0)])
            for name, producer in zip(names, producers, strict=True)
        )
    )
    headers = [header for _, header in iterate_batches(memoryview(log.read(end, 1 << 20).read()))]
    assert [header.records_count for header in headers] == [3]
    assert {harness.coordinator.describe(name).status for name in names} == {Status.ONGOING}


async def test_two_steps_of_one_transaction_in_a_round_see_each_other(harness):
    name = harness.name_in(1)
    producer = await harness.coordinator.init_producer_id(name, 60_000, NOBODY)
    added = harness.coordinator.add_partitions(name, *producer, [("orders", 0)])
    more = harness.coordinator.add_partitions(name, *producer, [("orders", 1)])
    assert harness.coordinator.describe(name).partitions == {("orders", 0), ("orders", 1)}
    await added
    await more
    ended = harness.coordinator.end(name, *producer, commit=True, client_version=0)
    fencing = harness.coordinator.init_producer_id(name, 60_000, NOBODY)
    await ended
    assert await fencing == (producer[0], producer[1] + 1)
