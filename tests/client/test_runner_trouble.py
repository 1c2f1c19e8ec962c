"""Runners given what they should not be given: handlers of the other kind, cancellations, signals, mistakes everywhere."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from headrace.client import (
    Admin,
    AsyncProducer,
    AsyncRunner,
    ConfigError,
    Metrics,
    Producer,
    Record,
    Retry,
    Runner,
    TopicPartition,
)
from headrace.testing.broker import BrokerThread
from tests.waiting import until

NewTopic = Callable[..., str]
ReadAll = Callable[..., list[Record]]
QUICK = Retry(attempts=3, delay=0.01, jitter=0)
SETTINGS = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 6000}


def fill(bootstrap: str, topic: str, count: int, *, key: str | None = "k") -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send_and_forget(topic, str(number), key=key)


async def work(record: Record) -> None: ...


class Worker:
    async def __call__(self, record: Record) -> None: ...


@pytest.mark.parametrize("handler", [work, Worker()])
def test_a_runner_refuses_a_handler_that_must_be_awaited(handler: object) -> None:
    with pytest.raises(ConfigError, match="AsyncRunner"):
        Runner(handler, "127.0.0.1:1", topics="t", group_id="g")


def test_a_coroutine_that_nobody_awaits_counts_as_nothing(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 3)
    runner = Runner(lambda record: work(record), bootstrap, topics=topic, group_id=group, **SETTINGS)
    with pytest.raises(ConfigError, match="returned a coroutine"):
        runner.run()
    assert admin.group_offsets(group) == {}
    assert f"{topic}.dlq" not in admin.topics()


async def test_an_asyncio_runner_stops_at_a_handler_that_cannot_be_awaited(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 3)
    calls: list[int] = []
    runner = AsyncRunner(
        lambda record: calls.append(record.offset),  # type: ignore[arg-type,func-returns-value]
        bootstrap,
        topics=topic,
        group_id=group,
        **SETTINGS,
    )
    with pytest.raises(ConfigError, match="there is Runner"):
        await asyncio.wait_for(runner.run(), 60)
    assert calls == [0]
    assert await asyncio.to_thread(admin.group_offsets, group) == {}


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_handler_that_wants_the_program_to_end_ends_the_run_and_nothing_is_committed_past_it(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str, raised: type[BaseException]
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 5)

    def handle(record: Record) -> None:
        if record.offset == 2:
            raise raised

    with pytest.raises(raised):
        Runner(handle, bootstrap, topics=topic, group_id=group, **SETTINGS).run()
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 2}


async def test_a_cancellation_that_a_handler_lets_out_is_a_failure_like_others(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 3)
    calls: Counter[int] = Counter()

    async def handle(record: Record) -> None:
        calls[record.offset] += 1
        if record.offset == 1:
            task = asyncio.ensure_future(asyncio.sleep(60))
            task.cancel()
            await task
        if record.offset == 2:
            runner.stop()

    runner = AsyncRunner(handle, bootstrap, topics=topic, group_id=group, retry=QUICK, **SETTINGS)
    await asyncio.wait_for(runner.run(), 60)
    assert calls == {0: 1, 1: 3, 2: 1}
    letters = await asyncio.to_thread(read_all, f"{topic}.dlq")
    assert [letter.header("headrace.dlq.reason") for letter in letters] == [b"CancelledError"]
    assert await asyncio.to_thread(admin.group_offsets, group) == {TopicPartition(topic, 0): 3}


async def test_a_run_that_is_cancelled_again_and_again_still_finishes_what_it_has_begun(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, 3)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(record: Record) -> None:
        begun.set()
        await go_on.wait()

    runner = AsyncRunner(handle, bootstrap, topics=topic, group_id=group, **SETTINGS)
    running = asyncio.ensure_future(runner.run())
    await asyncio.wait_for(begun.wait(), 60)
    for _ in range(5):
        running.cancel()
        await asyncio.sleep(0.01)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(admin.group_offsets, group) == {TopicPartition(topic, 0): 1}
    assert (await asyncio.to_thread(admin.group, group)).members == ()


async def test_one_signal_stops_every_runner_of_a_loop_and_whoever_listened_before_hears_it_too(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        runners = [
            AsyncRunner(work, bootstrap, topics=new_topic(), group_id=f"{group}-{number}", **SETTINGS)
            for number in range(3)
        ]
        running = [asyncio.ensure_future(runner.run()) for runner in runners]
        await asyncio.sleep(0)
        runners[0].stop()
        await asyncio.wait_for(running[0], 60)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(asyncio.gather(*running), 60)
        assert heard == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0)
        assert heard == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_stops_a_runner_in_the_main_thread(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    Runner(print, bootstrap, topics=new_topic(), group_id=group, **SETTINGS).run()
    assert signal.getsignal(signal.SIGINT) is before


async def test_a_runner_runs_once(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    runner = Runner(print, bootstrap, topics=new_topic(), group_id=group, **SETTINGS)
    runner.stop()
    await asyncio.to_thread(runner.run)
    with pytest.raises(ConfigError, match="has run already"):
        runner.run()
    later = AsyncRunner(work, bootstrap, topics=new_topic(), group_id=group, **SETTINGS)
    later.stop()
    await later.run()
    with pytest.raises(ConfigError, match="has run already"):
        await later.run()


def test_a_runner_that_does_not_know_where_to_start_handles_nothing(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 3)
    handled: list[Record] = []

    def start(partitions: object) -> dict[TopicPartition, int]:
        raise LookupError("a mistake")

    runner = Runner(
        handled.append,
        bootstrap,
        topics=topic,
        group_id=group,
        order="partition",
        start_offsets=start,
        **SETTINGS,
    )
    with pytest.raises(LookupError):
        runner.run()
    assert handled == []
    assert admin.group_offsets(group) == {}


def test_no_thread_outlives_the_run(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 20, key=None)

    def handle(record: Record) -> None:
        time.sleep(0.001)
        if record.offset == 10:
            runner.stop()

    runner = Runner(handle, bootstrap, topics=topic, group_id=group, concurrency=4, **SETTINGS)
    runner.run()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("headrace-runner")] == []


def test_a_pattern_does_not_make_a_runner_read_its_own_dead_letters(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    stem = new_topic()
    topic = f"{stem}.eu"
    admin.create_topic(topic, partitions=1)
    fill(bootstrap, topic, 2, key=None)
    seen: Counter[str] = Counter()

    def handle(record: Record) -> None:
        seen[record.topic] += 1
        raise ValueError("never")

    runner = Runner(
        handle,
        bootstrap,
        pattern=rf"{stem}\..*",
        group_id=group,
        retry=Retry(attempts=1),
        topic_metadata_refresh_interval_ms=100,
        **SETTINGS,
    )
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        until(lambda: f"{topic}.dlq" in admin.topics() and len(read_all(f"{topic}.dlq")) == 2)
        # A topic made later is found, and with it the dead letters would have been.
        admin.create_topic(f"{stem}.us", partitions=1)
        fill(bootstrap, f"{stem}.us", 1)
        until(lambda: seen[f"{stem}.us"] == 1)
    finally:
        runner.stop()
        thread.join()
    assert seen == {topic: 2, f"{stem}.us": 1}
    assert {name for name in admin.topics() if name.endswith(".dlq.dlq") and name.startswith(stem)} == set()


def test_metrics_of_a_partition_that_has_gone_do_not_stay(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic, registry = new_topic(), CollectorRegistry()
    fill(bootstrap, topic, 50)
    labels = {"topic": topic, "partition": "0"}

    def unfinished() -> float | None:
        return registry.get_sample_value("headrace_unfinished_records", labels)

    def handle(record: Record) -> None:
        until(lambda: (unfinished() or 0) > 0)
        runner.stop()

    runner = Runner(
        handle,
        bootstrap,
        topics=topic,
        group_id=group,
        hooks=[Metrics(registry)],
        max_poll_records=10,
        **SETTINGS,
    )
    runner.run()
    assert unfinished() == 0
    with pytest.raises(ConfigError, match="give one Metrics to all runners"):
        Metrics(registry)


@pytest.mark.parametrize("max_in_flight", [1, 2, 7])
def test_however_little_may_be_in_flight_everything_is_handled_in_order(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str, max_in_flight: int
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 60)
    seen: list[int] = []

    def handle(record: Record) -> None:
        seen.append(record.offset)
        if record.offset == 59:
            runner.stop()

    runner = Runner(
        handle,
        bootstrap,
        topics=topic,
        group_id=group,
        max_in_flight=max_in_flight,
        max_poll_records=5,
        **SETTINGS,
    )
    runner.run()
    assert seen == list(range(60))
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 60}


def test_partitions_taken_away_with_work_in_flight_that_does_not_end_are_given_up(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    """The handler comes back after its partition has gone; that counts for nothing, and harms nothing."""
    topic = new_topic()
    fill(bootstrap, topic, 3)
    begun, go_on = threading.Event(), threading.Event()
    later: list[int] = []

    def stuck(record: Record) -> None:
        begun.set()
        go_on.wait(60)

    def handle(record: Record) -> None:
        later.append(record.offset)
        if len(later) == 3:
            second.stop()

    first = Runner(stuck, bootstrap, topics=topic, group_id=group, drain_timeout=0.1, **SETTINGS)
    thread = threading.Thread(target=first.run)
    thread.start()
    assert begun.wait(60)
    first.stop()
    thread.join()
    second = Runner(handle, bootstrap, topics=topic, group_id=group, **SETTINGS)
    second.run()
    go_on.set()
    assert later == [0, 1, 2]
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 3}


def test_a_commit_that_fails_is_made_up_for_by_the_next(broker: BrokerThread, group: str) -> None:
    topic = broker.create_topic()
    fill(broker.bootstrap, topic, 3)
    runner = Runner(
        lambda record: None,
        broker.bootstrap,
        topics=topic,
        group_id=group,
        commit_interval=0.01,
        **SETTINGS,
    )
    broker.faults.error("OffsetCommit", "INVALID_COMMIT_OFFSET_SIZE")
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        with Admin(broker.bootstrap) as admin:
            until(lambda: admin.group_offsets(group) == {TopicPartition(topic, 0): 3})
        assert broker.faults.left == 0
    finally:
        runner.stop()
        thread.join()


def test_a_partition_that_stays_full_does_not_keep_the_others_waiting(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(2)
    with Producer(bootstrap) as producer:
        for number in range(200):
            producer.send_and_forget(topic, str(number), key="stuck", partition=0)
            producer.send_and_forget(topic, str(number), key="fine", partition=1)
    gate = threading.Event()
    done: Counter[int] = Counter()

    def handle(record: Record) -> None:
        if record.partition == 0:
            gate.wait(60)
        done[record.partition] += 1

    runner = Runner(handle, bootstrap, topics=topic, group_id=group, max_in_flight=20, **SETTINGS)
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        until(lambda: done[1] == 200)
        assert done[0] == 0
        gate.set()
        until(lambda: done[0] == 200)
    finally:
        gate.set()
        runner.stop()
        thread.join()


async def test_nor_does_it_in_asyncio(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    topic = new_topic(2)
    async with AsyncProducer(bootstrap) as producer:
        for number in range(200):
            await producer.send_and_forget(topic, str(number), key="stuck", partition=0)
            await producer.send_and_forget(topic, str(number), key="fine", partition=1)
    gate, fine, all_done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    done: Counter[int] = Counter()

    async def handle(record: Record) -> None:
        if record.partition == 0:
            await gate.wait()
        done[record.partition] += 1
        if done[1] == 200:
            fine.set()
        if done.total() == 400:
            all_done.set()

    runner = AsyncRunner(handle, bootstrap, topics=topic, group_id=group, max_in_flight=20, **SETTINGS)
    running = asyncio.ensure_future(runner.run())
    await asyncio.wait_for(fine.wait(), 60)
    assert done[0] == 0
    gate.set()
    await asyncio.wait_for(all_done.wait(), 60)
    runner.stop()
    await running


def test_a_runner_whose_broker_has_gone_can_be_stopped(
    make_broker: Callable[..., BrokerThread], group: str
) -> None:
    broker = make_broker({"group.initial.rebalance.delay.ms": "0"})
    topic = broker.create_topic()
    fill(broker.bootstrap, topic, 20)
    handled: list[int] = []
    runner = Runner(
        lambda record: handled.append(record.offset),
        broker.bootstrap,
        topics=topic,
        group_id=group,
        commit_interval=600,
        drain_timeout=2,
        **SETTINGS,
    )
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(lambda: len(handled) == 20)
    broker.kill()
    runner.stop()
    thread.join(45)
    assert not thread.is_alive()
