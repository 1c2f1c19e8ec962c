"""The runners against a broker: order, retries, dead letters, commits, back-pressure, rebalances."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from headrace.client import (
    Admin,
    AsyncRunner,
    ConfigError,
    HandlerFailed,
    Hook,
    Metrics,
    Producer,
    Record,
    Retry,
    Runner,
    TopicPartition,
    Tracing,
    TryLater,
    serializers,
    trace_headers,
)
from headrace.testing.broker import BrokerThread
from tests.client.running import running
from tests.waiting import until, until_async

NewTopic = Callable[..., str]
ReadAll = Callable[..., list[Record]]
QUICK = Retry(attempts=3, delay=0.01, jitter=0)
SETTINGS = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 6000}


def fill(bootstrap: str, topic: str, records: list[tuple[str | None, str]]) -> None:
    with Producer(bootstrap) as producer:
        for key, value in records:
            producer.send_and_forget(topic, value, key=key)


def test_keys_are_handled_side_by_side_and_each_in_order(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, [(f"k{number % 7}", str(number)) for number in range(210)])
    seen: dict[bytes, list[int]] = defaultdict(list)
    together, most = set(), 0

    def handle(record: Record[bytes, str]) -> None:
        nonlocal most
        together.add(record.key)
        most = max(most, len(together))
        time.sleep(0.001)
        seen[record.key].append(int(record.value))
        together.discard(record.key)

    runner = Runner(
        handle,
        bootstrap,
        topics=topic,
        group_id=group,
        value_deserializer=serializers.text(),
        **SETTINGS,
    )
    with running(runner):
        until(lambda: sum(map(len, seen.values())) == 210)
    assert all(numbers == sorted(numbers) and len(numbers) == 30 for numbers in seen.values())
    assert most > 1
    assert sum(admin.group_offsets(group).values()) == 210


def test_a_failing_record_is_tried_again_while_the_others_go_on(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [("bad", "0"), ("bad", "1"), ("good", "2"), ("good", "3")])
    done: list[bytes] = []
    released = threading.Event()

    def handle(record: Record) -> None:
        if record.value == b"0" and not released.is_set():
            raise OSError("not yet")
        done.append(record.value)

    retry = Retry(attempts=10_000, delay=0.01, factor=1)
    with running(Runner(handle, bootstrap, topics=topic, group_id=group, retry=retry, **SETTINGS)):
        until(lambda: len(done) == 2)
        assert done == [b"2", b"3"]
        released.set()
        until(lambda: len(done) == 4)
    assert done == [b"2", b"3", b"0", b"1"]


def test_nothing_is_committed_past_an_unfinished_record(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [("a", "0"), ("stuck", "1"), ("a", "2"), ("a", "3")])
    done: list[bytes] = []

    def handle(record: Record) -> None:
        if record.key == b"stuck":
            raise TryLater("not today", delay=0.05)
        done.append(record.value)

    runner = Runner(handle, bootstrap, topics=topic, group_id=group, commit_interval=0.01, **SETTINGS)
    with running(runner):
        until(lambda: len(done) == 3)
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 1}


def test_a_record_that_fails_for_good_goes_to_the_dead_letters_with_reason_and_origin(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    topic = new_topic(2)
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, "fine", partition=1)
        producer.send_and_wait(topic, "poison", key="k", partition=1, headers={"own": "kept"})
        producer.send_and_wait(topic, "after", key="k", partition=1)
    calls: Counter[bytes] = Counter()

    def handle(record: Record) -> None:
        calls[record.value] += 1
        if record.value == b"poison":
            raise ValueError("no such customer")

    with running(Runner(handle, bootstrap, topics=topic, group_id=group, retry=QUICK, **SETTINGS)):
        until(lambda: b"after" in calls)
    [letter] = read_all(f"{topic}.dlq")
    assert (letter.key, letter.value) == (b"k", b"poison")
    assert dict(letter.headers) == {
        "own": b"kept",
        "headrace.dlq.reason": b"ValueError: no such customer",
        "headrace.dlq.attempt": b"3",
        "headrace.dlq.topic": topic.encode(),
        "headrace.dlq.partition": b"1",
        "headrace.dlq.offset": b"1",
    }
    assert calls == {b"fine": 1, b"poison": 3, b"after": 1}
    assert admin.group_offsets(group)[TopicPartition(topic, 1)] == 3
    assert len(admin.topic(f"{topic}.dlq").partitions) == 2


def test_a_record_that_cannot_be_decoded_goes_to_the_dead_letters_at_once(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [("a", "{broken"), ("a", '{"n": 1}')])
    good: list[object] = []
    runner = Runner(
        lambda record: good.append(record.value),
        bootstrap,
        topics=topic,
        group_id=group,
        value_deserializer=serializers.json(),
        **SETTINGS,
    )
    with running(runner):
        until(lambda: good == [{"n": 1}])
    [letter] = read_all(f"{topic}.dlq")
    assert letter.value == b"{broken"
    assert letter.header("headrace.dlq.attempt") == b"1"


def test_without_dead_letters_the_runner_stops_and_commits_nothing_past_the_failure(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [("a", "0"), ("a", "bad"), ("a", "2")])

    def handle(record: Record) -> None:
        if record.value == b"bad":
            raise ValueError("bad")

    runner = Runner(
        handle, bootstrap, topics=topic, group_id=group, retry=QUICK, dead_letters=False, **SETTINGS
    )
    with pytest.raises(HandlerFailed, match=f"{topic}-0@1 failed 3 times"):
        runner.run()
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 1}


def test_too_much_unfinished_work_pauses_the_partition_and_goes_on_later(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [("k", str(number)) for number in range(300)])
    gate, registry = threading.Event(), CollectorRegistry()
    done: list[bytes] = []

    def handle(record: Record) -> None:
        gate.wait(30)
        done.append(record.value)

    runner = Runner(
        handle,
        bootstrap,
        topics=topic,
        group_id=group,
        max_in_flight=50,
        max_poll_records=10,
        hooks=[Metrics(registry)],
        **SETTINGS,
    )
    with running(runner):
        until(lambda: registry.get_sample_value("headrace_paused_partitions") == 1)
        labels = {"topic": topic, "partition": "0"}
        assert 50 <= (registry.get_sample_value("headrace_unfinished_records", labels) or 0) <= 110
        gate.set()
        until(lambda: len(done) == 300)
    assert [int(value) for value in done] == list(range(300))


def test_members_that_come_and_go_lose_nothing_and_keep_order(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(4)
    fill(bootstrap, topic, [(f"k{number % 20}", str(number)) for number in range(2000)])
    lock = threading.Lock()
    handled: dict[bytes, list[int]] = defaultdict(list)

    def handle(record: Record) -> None:
        time.sleep(0.002)
        with lock:
            handled[record.key].append(int(record.value))

    def member() -> Runner:
        return Runner(handle, bootstrap, topics=topic, group_id=group, commit_interval=0.05, **SETTINGS)

    def count() -> int:
        with lock:
            return sum(map(len, handled.values()))

    with running(member()):
        until(lambda: count() > 300)
        with running(member()):
            until(lambda: count() > 900)
        until(lambda: {int(n) for numbers in handled.values() for n in numbers} == set(range(2000)))
    # A partition changes hands only after what ran there has finished and was committed.
    assert count() == 2000
    assert all(numbers == sorted(numbers) for numbers in handled.values())


def test_stopping_finishes_what_is_being_handled_and_commits_it(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [("a", str(number)) for number in range(500)])
    done: list[int] = []

    def handle(record: Record) -> None:
        runner.stop()
        time.sleep(0.01)
        done.append(record.offset)

    runner = Runner(handle, bootstrap, topics=topic, group_id=group, **SETTINGS)
    runner.run()
    assert 1 <= len(done) < 500
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): len(done)}


def test_hooks_count_and_trace_every_attempt(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    exporter, registry = InMemorySpanExporter(), CollectorRegistry()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with Producer(bootstrap) as producer, tracer.start_as_current_span("order placed") as parent:
        producer.send_and_wait(topic, "x", headers=trace_headers({"a": "b"}))
    attempts: list[int] = []

    def handle(record: Record) -> None:
        attempts.append(trace.get_current_span().get_span_context().trace_id)
        if len(attempts) == 1:
            raise OSError("once")

    runner = Runner(
        handle,
        bootstrap,
        topics=topic,
        group_id=group,
        retry=QUICK,
        hooks=[Metrics(registry), Tracing(tracer)],
        **SETTINGS,
    )
    with running(runner):
        until(lambda: registry.get_sample_value("headrace_records_handled_total", {"topic": topic}) == 1)
    assert attempts == [parent.get_span_context().trace_id] * 2
    failed = registry.get_sample_value("headrace_record_failures_total", {"topic": topic, "error": "OSError"})
    assert failed == 1
    spans = [span for span in exporter.get_finished_spans() if span.name == f"process {topic}"]
    assert [span.attributes["headrace.attempt"] for span in spans] == [1, 2]
    assert [span.status.is_ok for span in spans] == [False, True]


def test_a_runner_waits_until_it_knows_where_to_start(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [(None, str(number)) for number in range(5)])
    start, asked = slow_to_know({TopicPartition(topic, 0): 3})
    done: list[bytes | None] = []
    runner = Runner(
        lambda record: done.append(record.value),
        bootstrap,
        topics=topic,
        group_id=group,
        order="partition",
        start_offsets=start,
        **SETTINGS,
    )
    with running(runner):
        until(lambda: len(done) == 2)
    assert done == [b"3", b"4"]
    assert len(asked) == 3


async def test_the_asyncio_runner_waits_for_it_too(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    await asyncio.to_thread(fill, bootstrap, topic, [(None, str(number)) for number in range(5)])
    start, asked = slow_to_know({TopicPartition(topic, 0): 3})
    done: list[bytes | None] = []

    async def handle(record: Record) -> None:
        done.append(record.value)
        if len(done) == 2:
            runner.stop()

    runner = AsyncRunner(
        handle,
        bootstrap,
        topics=topic,
        group_id=group,
        order="partition",
        start_offsets=start,
        **SETTINGS,
    )
    await asyncio.wait_for(runner.run(), 60)
    assert done == [b"3", b"4"]
    assert len(asked) == 3


def test_stopping_what_has_ended_changes_nothing(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    async def handle(record: Record) -> None: ...

    async def run() -> AsyncRunner:
        runner = AsyncRunner(handle, bootstrap, topics=new_topic(), group_id=group, **SETTINGS)
        runner.stop()
        await runner.run()
        return runner

    asyncio.run(run()).stop()


def slow_to_know(
    offsets: dict[TopicPartition, int],
) -> tuple[Callable[[object], dict[TopicPartition, int]], list[object]]:
    """A place that keeps offsets and is away the first two times it is asked."""
    asked: list[object] = []

    def start(partitions: object) -> dict[TopicPartition, int]:
        asked.append(partitions)
        if len(asked) < 3:
            raise TryLater("the database is away")
        return offsets

    return start, asked


class Rude(Hook):
    """Hides what the handler raises, and raises itself when it raises nothing."""

    @contextlib.contextmanager
    def handling(self, record: Record, attempt: int) -> Iterator[None]:
        try:
            yield
        except OSError:
            return
        raise RuntimeError("the hook is broken")


def test_a_hook_can_neither_hide_a_failure_nor_make_one(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, [(None, "x"), (None, "y")])
    calls: Counter[bytes] = Counter()

    def handle(record: Record) -> None:
        calls[record.value] += 1
        if calls[b"x"] == 1:
            raise OSError("once")

    runner = Runner(
        handle,
        bootstrap,
        topics=topic,
        group_id=group,
        order="partition",
        retry=QUICK,
        hooks=[Rude()],
        **SETTINGS,
    )
    with running(runner):
        until(lambda: b"y" in calls)
    assert calls == {b"x": 2, b"y": 1}
    assert admin.group_offsets(group) == {TopicPartition(topic, 0): 2}
    assert f"{topic}.dlq" not in admin.topics()


def test_whatever_a_topic_can_hold_fits_into_its_dead_letters(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    """Larger than a producer sends by default, larger than a topic takes by default, and compressed."""
    topic = new_topic(max_message_bytes="2000000")
    large, wide = os.urandom(1_900_000), b"x" * 5_000_000
    with Producer(bootstrap, max_request_size=10_000_000) as producer:
        producer.send_and_wait(topic, large)
    with Producer(bootstrap, max_request_size=10_000_000, compression_type="zstd") as producer:
        producer.send_and_wait(topic, wide)

    def handle(record: Record) -> None:
        raise ValueError("half a pair \ud800")

    with running(
        Runner(handle, bootstrap, topics=topic, group_id=group, retry=Retry(attempts=1), **SETTINGS)
    ):
        until(lambda: f"{topic}.dlq" in admin.topics() and len(read_all(f"{topic}.dlq")) == 2)
    letters = read_all(f"{topic}.dlq")
    assert {letter.value for letter in letters} == {large, wide}
    assert letters[0].header("headrace.dlq.reason") == b"ValueError: half a pair \\ud800"


async def test_the_asyncio_runner_does_the_same(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll, group: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, [(f"k{number % 10}", str(number)) for number in range(500)] + [("bad", "poison")])
    seen: dict[bytes, list[int]] = defaultdict(list)
    finished = asyncio.Event()

    async def handle(record: Record) -> None:
        await asyncio.sleep(0.001)
        if record.value == b"poison":
            raise ValueError("poison")
        seen[record.key].append(int(record.value))
        if sum(map(len, seen.values())) == 500:
            finished.set()

    registry = CollectorRegistry()
    runner = AsyncRunner(
        handle, bootstrap, topics=topic, group_id=group, retry=QUICK, hooks=[Metrics(registry)], **SETTINGS
    )
    task = asyncio.ensure_future(runner.run())
    await asyncio.wait_for(finished.wait(), 30)
    await until_async(
        lambda: registry.get_sample_value("headrace_dead_letters_total", {"topic": topic}) == 1,
    )
    runner.stop()
    await task
    assert all(numbers == sorted(numbers) and len(numbers) == 50 for numbers in seen.values())
    assert sum(admin.group_offsets(group).values()) == 501
    assert [letter.value for letter in read_all(f"{topic}.dlq")] == [b"poison"]


async def test_the_asyncio_runner_shares_partitions_without_doubles(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(4)
    fill(bootstrap, topic, [(f"k{number % 20}", str(number)) for number in range(1500)])
    seen: list[int] = []

    async def handle(record: Record) -> None:
        await asyncio.sleep(0.01)
        seen.append(int(record.value))

    async def until_seen(count: int) -> None:
        await until_async(lambda: len(seen) >= count)

    def member() -> AsyncRunner:
        return AsyncRunner(
            handle, bootstrap, topics=topic, group_id=group, commit_interval=0.05, concurrency=10, **SETTINGS
        )

    first, second = member(), member()
    running = [asyncio.ensure_future(first.run())]
    await until_seen(200)
    running.append(asyncio.ensure_future(second.run()))
    await until_seen(800)
    first.stop()
    await until_seen(1500)
    second.stop()
    await asyncio.gather(*running)
    assert sorted(seen) == list(range(1500))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"topics": "t"}, "needs group_id="),
        ({"group_id": "g"}, "either topics= or pattern="),
        ({"group_id": "g", "topics": "t", "order": "random"}, 'choose "key", "partition" or "none"'),
        ({"group_id": "g", "topics": "t", "concurrency": 0}, "at least 1"),
    ],
)
def test_a_wrong_option_gets_one_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Runner(print, "127.0.0.1:1", **options)


def test_a_broker_that_restarts_costs_time_and_no_record(
    make_broker: Callable[..., BrokerThread], group: str
) -> None:
    broker = make_broker({"group.initial.rebalance.delay.ms": "0"})
    with Admin(broker.bootstrap) as admin:
        admin.create_topic("orders", partitions=2)
    fill(broker.bootstrap, "orders", [(f"k{number % 9}", str(number)) for number in range(300)])
    seen: set[int] = set()

    def handle(record: Record) -> None:
        time.sleep(0.003)
        seen.add(int(record.value or b""))

    runner = Runner(
        handle,
        broker.bootstrap,
        topics="orders",
        group_id=group,
        commit_interval=0.05,
        concurrency=2,
        **SETTINGS,
    )
    with running(runner):
        until(lambda: len(seen) > 50)
        broker.stop()
        broker.start()
        fill(broker.bootstrap, "orders", [(f"k{number % 9}", str(number)) for number in range(300, 400)])
        until(lambda: len(seen) == 400)
    assert seen == set(range(400))
