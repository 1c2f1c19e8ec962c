"""Reading: polls, commits, seeking, pausing, subscribing, and what counts as handled. Sync and asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.client import (
    Admin,
    AsyncConsumer,
    CommitError,
    ConfigError,
    Consumer,
    DeserializationError,
    Producer,
    Record,
    TopicPartition,
    serializers,
)
from headrace.testing.broker import BrokerThread

NewTopic = Callable[..., str]
EARLIEST: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 6000,
}


def fill(bootstrap: str, topic: str, count: int, partitions: int = 1) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send_and_forget(
                topic, str(number), partition=number % partitions, timestamp=1_000_000 + number
            )


def poll_until(consumer: Consumer, count: int) -> list[Record]:
    records: list[Record] = []
    while len(records) < count:
        records += consumer.poll(0.5)
    return records


def test_a_partition_that_goes_and_comes_back_within_one_poll_loses_no_record(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 20, partitions=2)
    settings: dict[str, Any] = {**EARLIEST, "group_id": group, "enable_auto_commit": False}
    joined = threading.Event()

    def join() -> None:
        with Consumer(bootstrap, **settings) as other:
            other.subscribe(topic)
            while not joined.is_set():
                other.poll(0.1)

    with Consumer(bootstrap, **settings) as consumer:
        consumer.subscribe(topic)
        poll_until(consumer, 20)
        member = threading.Thread(target=join)
        member.start()
        try:
            # All was read and nothing committed: what comes next comes after the rebalance.
            records = consumer.poll(60)
            records += poll_until(consumer, 10 - len(records))
        finally:
            joined.set()
            member.join()
    assert [record.offset for record in records] == list(range(10))


def test_a_poll_returns_at_most_max_poll_records_and_as_soon_as_there_are_some(
    bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 25)
    with Consumer(bootstrap, max_poll_records=10) as consumer:
        consumer.assign({(topic, 0): 0})
        sizes = [len(consumer.poll(30, max_records=3))]
        assert 1 <= sizes[0] <= 3
        while sum(sizes) < 25:
            sizes.append(len(consumer.poll(30)))
        assert max(sizes) <= 10


def test_a_record_is_committed_once_the_program_comes_back_and_not_before(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 4)

    def handle_until_failure() -> None:
        with Consumer(bootstrap, group_id=group, **EARLIEST) as consumer:
            consumer.subscribe(topic)
            for record in consumer:
                if record.offset == 2:
                    raise OSError("while handling the third")

    with pytest.raises(OSError):
        handle_until_failure()
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 2}
    with Consumer(bootstrap, group_id=group, **EARLIEST) as consumer:
        consumer.subscribe(topic)
        assert [record.offset for record in poll_until(consumer, 2)] == [2, 3]
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 4}


def test_at_most_once_commits_before_the_program_sees_the_record(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 3)
    with Consumer(bootstrap, group_id=group, delivery="at_most_once", **EARLIEST) as consumer:
        consumer.subscribe(topic)
        records = poll_until(consumer, 3)
        assert admin.group_offsets(group) == {TopicPartition(topic, 0): records[-1].offset + 1}


def test_commits_by_record_by_partition_and_later(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 10, partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    outcomes: list[object] = []
    with Consumer(
        bootstrap,
        group_id=group,
        enable_auto_commit=False,
        on_commit=lambda offsets, error: outcomes.append((dict(offsets), error)),
        **EARLIEST,
    ) as consumer:
        consumer.subscribe(topic)
        records = poll_until(consumer, 10)
        consumer.commit(next(record for record in records if record.topic_partition == first))
        assert consumer.committed(first, second) == {first: 1, second: None}
        consumer.commit({second: 3})
        assert consumer.committed(second) == {second: 3}
        consumer.commit_async({first: 4})
        while ({first: 4}, None) not in outcomes:
            consumer.poll(0.1)
        consumer.commit(records)
        assert consumer.committed() == {first: 5, second: 5}
    assert admin.group_offsets(group) == {first: 5, second: 5}


def test_seeking_by_offset_by_end_and_by_time(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 7)
        assert poll_until(consumer, 3)[0].offset == 7
        consumer.seek_to_beginning()
        assert poll_until(consumer, 10)[0].offset == 0
        assert consumer.position(partition) == 10
        consumer.seek_to_time(1_000_004)
        assert poll_until(consumer, 6)[0].offset == 4
        consumer.seek_to_time(datetime.fromtimestamp(1000.008, UTC))
        assert poll_until(consumer, 2)[0].offset == 8
        consumer.seek_to_end()
        assert consumer.poll(0.2) == []
        assert consumer.range_of(partition) == (0, 10)
        with pytest.raises(ConfigError, match="is not assigned"):
            consumer.seek(TopicPartition(topic, 1), 0)


def test_a_paused_partition_is_silent_until_it_is_resumed(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 10, partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Consumer(bootstrap) as consumer:
        consumer.assign({first: 0, second: 0})
        consumer.pause(first)
        assert consumer.paused() == {first}
        assert {record.partition for record in poll_until(consumer, 5)} == {1}
        assert consumer.poll(0.2) == []
        consumer.resume(first)
        assert {record.partition for record in poll_until(consumer, 5)} == {0}


def test_a_pattern_subscribes_to_every_topic_that_matches(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    stem = new_topic()
    for suffix in ("-one", "-two"):
        admin.create_topic(stem + suffix, partitions=1)
        fill(bootstrap, stem + suffix, 1)
    with Consumer(bootstrap, group_id=group, **EARLIEST) as consumer:
        consumer.subscribe(pattern=rf"{stem}-.*")
        assert {record.topic for record in poll_until(consumer, 2)} == {f"{stem}-one", f"{stem}-two"}


def test_rebalance_callbacks_can_choose_where_to_start_and_their_errors_are_raised(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 5)
    seen: list[object] = []
    with Consumer(bootstrap, group_id=group, **EARLIEST) as consumer:

        def assigned(partitions: Any) -> dict[TopicPartition, int]:
            seen.append(set(partitions))
            return dict.fromkeys(partitions, 3)

        consumer.subscribe(topic, on_assign=assigned, on_revoke=lambda partitions: seen.append("revoked"))
        assert [record.offset for record in poll_until(consumer, 2)] == [3, 4]
        assert consumer.assignment() == {TopicPartition(topic, 0)}
    assert seen == [{TopicPartition(topic, 0)}, "revoked"]
    with Consumer(bootstrap, group_id=f"{group}-2", **EARLIEST) as consumer:
        consumer.subscribe(topic, on_assign=lambda partitions: {1: 1 / 0})

        def poll_for_ever() -> None:
            while True:
                consumer.poll(0.2)

        with pytest.raises(ZeroDivisionError):
            poll_for_ever()


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky"])
def test_members_of_a_group_share_the_partitions(
    bootstrap: str, new_topic: NewTopic, group: str, strategy: str
) -> None:
    topic = new_topic(4)
    settings = {**EARLIEST, "partition_assignment_strategy": strategy}
    with (
        Consumer(bootstrap, group_id=group, **settings) as one,
        Consumer(bootstrap, group_id=group, **settings) as two,
    ):
        one.subscribe(topic)
        two.subscribe(topic)
        while not (len(one.assignment()) == len(two.assignment()) == 2):
            one.poll(0.05)
            two.poll(0.05)
        assert one.assignment() | two.assignment() == {TopicPartition(topic, number) for number in range(4)}


def test_with_sticky_assignment_members_keep_what_they_had(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(6)
    settings = {**EARLIEST, "group_id": group, "partition_assignment_strategy": "sticky"}
    with (
        Consumer(bootstrap, **settings) as one,
        Consumer(bootstrap, **settings) as two,
        Consumer(bootstrap, **settings) as three,
    ):

        def share(members: list[Consumer], each: int) -> None:
            while any(len(member.assignment()) != each for member in members):
                for member in members:
                    member.poll(0.05)

        one.subscribe(topic)
        two.subscribe(topic)
        share([one, two], 3)
        before = one.assignment(), two.assignment()
        three.subscribe(topic)
        share([one, two, three], 2)
        assert one.assignment() < before[0]
        assert two.assignment() < before[1]


def test_consumers_without_a_group_each_get_everything(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 6, partitions=2)
    with Consumer(bootstrap, **EARLIEST) as one, Consumer(bootstrap, **EARLIEST) as two:
        one.subscribe(topic)
        two.subscribe(topic)
        assert len(poll_until(one, 6)) == len(poll_until(two, 6)) == 6


def test_a_poison_record_does_not_stop_the_consumer(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Producer(bootstrap) as producer:
        producer.send_and_forget(topic, "{broken")
        producer.send_and_forget(topic, "[1]")
    with Consumer(bootstrap, value_deserializer=serializers.json()) as consumer:
        consumer.assign({(topic, 0): 0})
        poison, fine = poll_until(consumer, 2)
        with pytest.raises(DeserializationError, match=f"{topic}-0@0"):
            _ = poison.value
        assert fine.value == [1]


async def test_the_asyncio_consumer_reads_commits_seeks_and_pauses(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 20)
    partition = TopicPartition(topic, 0)
    async with AsyncConsumer(bootstrap, group_id=group, enable_auto_commit=False, **EARLIEST) as consumer:
        await consumer.subscribe(topic)
        seen = []
        async for record in consumer:
            seen.append(record.offset)
            if len(seen) == 5:
                break
        await consumer.commit()
        assert await consumer.committed() == {partition: 5}
        assert await consumer.position(partition) == 5
        # What was fetched ahead comes again after the pause, and nothing comes during it.
        await consumer.pause(partition)
        assert await consumer.poll(0.1) == []
        await consumer.resume(partition)
        records: list[Record] = []
        while len(records) < 15:
            records += await consumer.poll(1)
        assert [record.offset for record in records] == list(range(5, 20))
        await consumer.seek(partition, 18)
        assert (await consumer.poll(30))[0].offset == 18
        await consumer.commit({partition: 19})
    assert admin.group_offsets(group) == {partition: 19}


async def test_a_cancelled_poll_loses_nothing(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    async with AsyncConsumer(bootstrap) as consumer:
        await consumer.assign({(topic, 0): 0})
        waiting = asyncio.ensure_future(consumer.poll(20))
        await asyncio.sleep(0.2)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        await asyncio.to_thread(fill, bootstrap, topic, 3)
        records: list[Record] = []
        while len(records) < 3:
            records += await consumer.poll(5)
        assert [record.offset for record in records] == [0, 1, 2]


async def test_the_asyncio_consumer_commits_only_what_the_program_came_back_from(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 10)

    async def handle_until_failure() -> None:
        async with AsyncConsumer(bootstrap, group_id=group, max_poll_records=2, **EARLIEST) as consumer:
            await consumer.subscribe(topic)
            async for record in consumer:
                if record.offset == 5:
                    raise OSError("while handling the sixth")

    with pytest.raises(OSError):
        await handle_until_failure()
    committed = (await asyncio.to_thread(admin.group_offsets, group))[TopicPartition(topic, 0)]
    assert committed <= 5


def test_what_on_commit_raises_is_raised_by_a_poll_and_costs_no_record(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 30)

    def fail(offsets: object, error: object) -> None:
        raise ZeroDivisionError

    seen: list[int] = []
    raised = 0
    consumer: Consumer[bytes, bytes] = Consumer(
        bootstrap, group_id=group, enable_auto_commit=False, on_commit=fail, max_poll_records=3, **EARLIEST
    )
    with contextlib.suppress(ZeroDivisionError), consumer:  # the last commits may be answered in its end
        consumer.subscribe(topic)
        while len(seen) < 30 or not raised:
            try:
                seen += [record.offset for record in consumer.poll(0.5)]
                consumer.commit_async()
            except ZeroDivisionError:
                raised += 1
    assert raised
    assert seen == list(range(30))


def test_a_listener_that_raises_costs_no_record(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 200)
    heard: list[str] = []

    def listen(statistics: str) -> None:
        heard.append(statistics)
        raise ValueError("a mistake")

    with Consumer(bootstrap, stats_cb=listen, statistics_interval_ms=1, max_poll_records=1) as consumer:
        consumer.assign({(topic, 0): 0})
        assert [record.offset for record in poll_until(consumer, 200)] == list(range(200))
        while not heard:
            consumer.poll(0.05)


def test_no_record_is_returned_before_the_error_of_on_assign(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 5)
    with Consumer(bootstrap, group_id=group, **EARLIEST) as consumer:
        consumer.subscribe(topic, on_assign=lambda partitions: {1: 1 / 0})
        seen: list[Record] = []

        def poll_until_it_fails() -> None:
            while True:
                seen.extend(consumer.poll(30))

        with pytest.raises(ZeroDivisionError):
            poll_until_it_fails()
        assert seen == []
        # Whoever goes on all the same misses nothing.
        assert [record.offset for record in poll_until(consumer, 5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("handled", [True, False])
def test_what_on_revoke_raises_while_closing_is_raised_unless_something_else_is(
    bootstrap: str, new_topic: NewTopic, group: str, handled: bool
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 1)

    def fail(partitions: object) -> None:
        raise ZeroDivisionError

    def read() -> None:
        with Consumer(bootstrap, group_id=group, **EARLIEST) as consumer:
            consumer.subscribe(topic, on_revoke=fail)
            poll_until(consumer, 1)
            if not handled:
                raise KeyError

    with pytest.raises(ZeroDivisionError if handled else KeyError):
        read()


@pytest.mark.parametrize(
    "error",
    ["COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REQUEST_TIMED_OUT"],
)
def test_a_commit_is_tried_again_when_that_may_help(broker: BrokerThread, group: str, error: str) -> None:
    topic = broker.create_topic()
    fill(broker.bootstrap, topic, 3)
    with Consumer(broker.bootstrap, group_id=group, enable_auto_commit=False, **EARLIEST) as consumer:
        consumer.subscribe(topic)
        poll_until(consumer, 3)
        broker.faults.error("OffsetCommit", error, times=3)
        consumer.commit()
        assert broker.faults.left == 0
        assert consumer.committed() == {TopicPartition(topic, 0): 3}


def test_a_commit_that_cannot_succeed_is_not_tried_again(broker: BrokerThread, group: str) -> None:
    topic = broker.create_topic()
    fill(broker.bootstrap, topic, 3)
    with Consumer(broker.bootstrap, group_id=group, enable_auto_commit=False, **EARLIEST) as consumer:
        consumer.subscribe(topic)
        poll_until(consumer, 3)
        broker.faults.error("OffsetCommit", "OFFSET_METADATA_TOO_LARGE", times=2)
        with pytest.raises(CommitError) as failure:
            consumer.commit()
        assert (broker.faults.left, failure.value.retriable) == (1, False)
        broker.faults.heal()


def test_a_commit_gives_up_in_time_when_the_cluster_is_gone(
    make_broker: Callable[..., BrokerThread], group: str
) -> None:
    broker = make_broker({"group.initial.rebalance.delay.ms": "0"})
    topic = broker.create_topic()
    fill(broker.bootstrap, topic, 3)
    settings = {"enable_auto_commit": False, "session_timeout_ms": 1_000_000, **EARLIEST}
    with Consumer(broker.bootstrap, group_id=group, **settings) as consumer:
        consumer.subscribe(topic)
        poll_until(consumer, 3)
        broker.kill()
        try:
            for _ in range(2):
                with pytest.raises(CommitError, match="committing offsets failed") as failure:
                    consumer.commit(timeout=1)
                assert failure.value.retriable
        finally:
            broker.start()  # without it the consumer would close only after its session timeout
        consumer.commit()
        assert consumer.committed() == {TopicPartition(topic, 0): 3}


def test_a_pattern_matches_whole_names(bootstrap: str, admin: Admin, new_topic: NewTopic, group: str) -> None:
    stem = new_topic()
    admin.create_topic(f"{stem}-longer", partitions=1)
    admin.create_topic(f"{stem}-x", partitions=1)
    with Consumer(bootstrap, group_id=group, **EARLIEST) as consumer:
        consumer.subscribe(pattern=f"{stem}|{stem}-x")
        while not consumer.assignment():
            consumer.poll(0.1)
        assert {partition.topic for partition in consumer.assignment()} == {stem, f"{stem}-x"}


def test_a_poll_may_ask_for_more_than_librdkafka_gives_at_once(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 3)
    with Consumer(bootstrap, max_poll_records=5_000_000) as consumer:
        consumer.assign({(topic, 0): 0})
        assert len(poll_until(consumer, 3)) == 3


async def test_closing_twice_is_closing_once_and_after_it_a_sentence(bootstrap: str) -> None:
    sync = Consumer(bootstrap)
    sync.close()
    sync.close()
    with pytest.raises(ConfigError, match="cannot be read from"):
        sync.poll(0)
    consumer = AsyncConsumer(bootstrap)
    await consumer.close()
    await consumer.close()
    for call in (consumer.poll, consumer.commit, lambda: consumer.seek(TopicPartition("t", 0), 0)):
        with pytest.raises(ConfigError, match="closed"):
            await call()


def test_the_asyncio_consumer_has_every_method_of_the_other() -> None:
    for_the_machinery = {
        "check_transactional",
        "commit_handed_out",
        "fetch",
        "fetch_from",
        "hand_out",
        "mark_handled",
        "rewind",
        "transaction_ended",
        "transaction_in_doubt",
        "transaction_offsets",
        "uncommitted",
    }
    public = {name for name in dir(Consumer) if not name.startswith("_")}
    assert public - for_the_machinery <= set(dir(AsyncConsumer))


async def left_behind(consumer: AsyncConsumer) -> None:
    """A poll that is cancelled while its thread has records in hand already."""
    fetched, go_on = threading.Event(), threading.Event()
    fetch = consumer.sync.fetch

    def slowly(timeout: float, limit: int) -> list[Record]:
        records = fetch(timeout, limit)
        if records:
            fetched.set()
            go_on.wait(30)
        return records

    consumer.sync.fetch = slowly  # type: ignore[method-assign]
    waiting = asyncio.ensure_future(consumer.poll(30))
    await asyncio.to_thread(fetched.wait, 30)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    consumer.sync.fetch = fetch  # type: ignore[method-assign]
    go_on.set()


async def test_what_a_cancelled_poll_has_left_behind_is_forgotten_by_a_seek(
    bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 20)
    async with AsyncConsumer(bootstrap) as consumer:
        await consumer.assign({(topic, 0): 0})
        await left_behind(consumer)
        await consumer.seek(TopicPartition(topic, 0), 15)
        records: list[Record] = []
        while len(records) < 5:
            records += await consumer.poll(5)
        assert [record.offset for record in records] == [15, 16, 17, 18, 19]


async def test_what_a_cancelled_poll_has_left_behind_waits_in_a_pause(
    bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 20)
    partition = TopicPartition(topic, 0)
    async with AsyncConsumer(bootstrap) as consumer:
        await consumer.assign({partition: 0})
        await left_behind(consumer)
        await consumer.pause(partition)
        assert await consumer.poll(0.2) == []
        await consumer.resume(partition)
        records: list[Record] = []
        while len(records) < 20:
            records += await consumer.poll(5)
        assert [record.offset for record in records] == list(range(20))


async def test_a_cancelled_pause_loses_nothing(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 20)
    partition = TopicPartition(topic, 0)
    async with AsyncConsumer(bootstrap) as consumer:
        await consumer.assign({partition: 0})
        seen = [record.offset for record in await consumer.poll(30, max_records=1)]
        pausing = asyncio.ensure_future(consumer.pause(partition))
        await asyncio.sleep(0)
        pausing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pausing
        await consumer.resume(partition)
        while len(seen) < 20:
            seen += [record.offset for record in await consumer.poll(5)]
        assert seen == list(range(20))


async def test_tasks_that_poll_together_share_the_records(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 50)
    seen: list[int] = []
    async with AsyncConsumer(bootstrap) as consumer:
        await consumer.assign({(topic, 0): 0})

        async def read() -> None:
            while len(seen) < 50:
                seen.extend(record.offset for record in await consumer.poll(0.2, max_records=3))

        await asyncio.gather(read(), read(), read())
    assert sorted(seen) == list(range(50))


async def test_at_most_once_loses_nothing_to_a_cancelled_poll(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 4)
    async with AsyncConsumer(bootstrap, group_id=group, delivery="at_most_once", **EARLIEST) as consumer:
        await consumer.subscribe(topic)
        committing, go_on = threading.Event(), threading.Event()
        commit = consumer.sync.commit_handed_out

        def slowly() -> None:
            committing.set()
            go_on.wait(30)
            commit()

        consumer.sync.commit_handed_out = slowly  # type: ignore[method-assign]
        waiting = asyncio.ensure_future(consumer.poll(30, max_records=2))
        await asyncio.to_thread(committing.wait, 30)
        waiting.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        seen: list[int] = []
        while len(seen) < 4:
            seen += [record.offset for record in await consumer.poll(5)]
        assert seen == [0, 1, 2, 3]


async def test_taking_ones_time_over_what_was_fetched_ahead_costs_no_membership(
    make_broker: Callable[..., BrokerThread], group: str
) -> None:
    broker = make_broker({"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"})
    topic = broker.create_topic()
    await asyncio.to_thread(fill, broker.bootstrap, topic, 12)
    lost: list[object] = []
    async with AsyncConsumer(
        broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,
        session_timeout_ms=900,
        max_poll_interval_ms=900,
    ) as consumer:
        await consumer.subscribe(topic, on_lost=lost.append)
        seen = []
        async for record in consumer:
            seen.append(record.offset)
            await asyncio.sleep(0.25)
            await consumer.commit(record)
            if len(seen) == 12:
                break
    assert (seen, lost) == (list(range(12)), [])
