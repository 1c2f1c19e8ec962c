"""Runners that do less under load: by command, by lag, under kill -9; and what they dropped, afterwards."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.client import (
    Admin,
    AsyncRunner,
    ConfigError,
    DropWhere,
    LagBounds,
    PastDeadline,
    Producer,
    Record,
    Retry,
    Runner,
    SampleByKey,
    SwitchOff,
    TopicPartition,
)
from headrace.client.degrade import notes
from headrace.client.degrade.notes import Account, Notes
from headrace.client.degrade.orders import Orders
from headrace.client.degrade.replay import Outcome, Replay
from headrace.client.degrade.states import Order
from tests.client.running import running
from tests.waiting import until, until_async

NewTopic = Callable[..., str]
SETTINGS = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 6000}


def fill(bootstrap: str, topic: str, numbers: range) -> None:
    with Producer(bootstrap) as producer:
        for number in numbers:
            producer.send_and_forget(topic, str(number), key=f"k{number % 20}")


def account(bootstrap: str, admin: Admin, group: str) -> Account:
    return Notes({"bootstrap.servers": bootstrap}, group).read(admin)


def replay(bootstrap: str, group: str) -> Outcome:
    return Replay({"bootstrap.servers": bootstrap}, group).run(lambda count: None)


def order(bootstrap: str, group: str, rule: str, what: Order) -> None:
    with Orders(bootstrap) as orders:
        done, instances = orders.confirmed(orders.give(group, [rule], what), 60)
    assert (done, instances) == (1, 1)


def is_listening(bootstrap: str, group: str) -> bool:
    with Orders(bootstrap) as orders:
        return bool(orders.status([group])[0].instances)


def is_on(runner: Runner, rule: str) -> bool:
    return rule in runner.rules() and runner.rules()[rule].state.acts


def test_what_a_sample_drops_is_counted_and_comes_back_with_a_replay(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, range(200))
    seen: list[Record] = []
    rule = SampleByKey(keep=0.5)
    runner = Runner(seen.append, bootstrap, topics=topic, group_id=group, degrade=[rule], **SETTINGS)
    with running(runner):
        until(lambda: len(seen) + sum(each.records for each in runner.degraded()) == 200)
        kept = {record.key for record in seen}
        assert 0 < len(kept) < 20
        assert len(seen) == len(kept) * 10
        assert {each.topic for each in runner.degraded()} == {topic}
        written = account(bootstrap, admin, group)
        missing = 200 - len(seen)
        assert written.total(notes.DROPPED) == written.remaining == missing
        assert replay(bootstrap, group) == Outcome(missing, 0)
        until(lambda: len(seen) == 200)
        assert replay(bootstrap, group) == Outcome(0, 0)
    assert sorted(int(each.value) for each in seen) == list(range(200))
    # The handler sees a record as it was where it was dropped.
    assert {record.topic for record in seen} == {topic}
    assert {(each.partition, each.offset) for each in seen} == {
        (p, o) for p in range(2) for o in counted(seen, p)
    }
    assert account(bootstrap, admin, group).remaining == 0


def counted(records: list[Record], partition: int) -> range:
    return range(sum(each.partition == partition for each in records))


def test_a_command_switches_a_handler_off_and_a_replay_is_for_that_handler_alone(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(1)
    orders, messages = list[bytes](), list[bytes]()
    handlers = {
        "order": lambda record: orders.append(record.value),
        "sms": lambda record: messages.append(record.value),
    }
    runner = Runner(handlers, bootstrap, topics=topic, group_id=group, **SETTINGS)
    with running(runner):
        fill(bootstrap, topic, range(10))
        until(lambda: len(messages) == 10)
        order(bootstrap, group, "sms", Order.ON)
        fill(bootstrap, topic, range(10, 30))
        until(lambda: len(orders) == 30)
        until(lambda: [(each.handler, each.records) for each in runner.degraded()] == [("sms", 20)])
        assert len(messages) == 10
        order(bootstrap, group, "sms", Order.AUTO)
        fill(bootstrap, topic, range(30, 40))
        until(lambda: len(messages) == 20)
        assert replay(bootstrap, group) == Outcome(20, 0)
        until(lambda: len(messages) == 40)
    assert sorted(map(int, messages)) == list(range(40))
    assert sorted(map(int, orders)) == list(range(40))


def test_a_replay_for_a_handler_that_is_still_switched_off_is_noted_again(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(1)
    messages: list[Record] = []
    handlers = {"order": lambda record: None, "sms": messages.append}
    runner = Runner(handlers, bootstrap, topics=topic, group_id=group, **SETTINGS)
    with running(runner):
        until(lambda: is_listening(bootstrap, group))
        order(bootstrap, group, "sms", Order.ON)
        fill(bootstrap, topic, range(5))
        until(lambda: account(bootstrap, admin, group).remaining == 5)
        assert replay(bootstrap, group) == Outcome(5, 0)
        until(lambda: account(bootstrap, admin, group).remaining == 5)
        order(bootstrap, group, "sms", Order.AUTO)
        assert replay(bootstrap, group) == Outcome(5, 0)
        until(lambda: len(messages) == 5)
    assert {(record.topic, record.offset) for record in messages} == {(topic, offset) for offset in range(5)}


def test_a_switched_off_group_keeps_its_place_also_over_a_restart_and_catches_up(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(2)
    seen: list[bytes] = []

    def runner() -> Runner:
        handle = lambda record: seen.append(record.value)  # noqa: E731
        return Runner(handle, bootstrap, topics=topic, group_id=group, degrade=[], **SETTINGS)

    first = runner()
    with running(first):
        fill(bootstrap, topic, range(10))
        until(lambda: len(seen) == 10)
        order(bootstrap, group, "group", Order.ON)
        fill(bootstrap, topic, range(10, 20))
    second = runner()
    with running(second):
        until(lambda: is_on(second, "group"))
        until(lambda: len(admin.group(group).members) == 1)
        assert len(seen) <= 10 + 1  # one may have been on its way
        order(bootstrap, group, "group", Order.AUTO)
        until(lambda: len(seen) == 20)
    assert sorted(map(int, seen)) == list(range(20))
    assert account(bootstrap, admin, group).total(notes.DROPPED) == 0


def test_a_rule_engages_by_the_lag_of_another_group_and_is_released_when_that_has_caught_up(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic, core = new_topic(1), f"{group}-core"
    fill(bootstrap, topic, range(100))
    rule = SwitchOff(when=LagBounds(records=(50, 5), group=core))
    handled, counted = list[bytes](), list[bytes]()
    go_on = threading.Event()

    def sell(record: Record) -> None:
        handled.append(record.value)
        if len(handled) == 10:
            go_on.wait(90)

    shop = Runner(
        sell, bootstrap, topics=topic, group_id=core, concurrency=1, commit_interval=0.1, **SETTINGS
    )
    statistics = Runner(
        lambda record: counted.append(record.value),
        bootstrap,
        topics=topic,
        group_id=group,
        degrade=[rule],
        **SETTINGS,
    )
    with running(shop), running(statistics):
        until(lambda: is_on(statistics, "group"))
        place = statistics.rules()["group"]
        assert place.state == "engaged"
        assert place.why is not None
        assert place.why.startswith(f"{core}: ")
        go_on.set()
        until(lambda: not is_on(statistics, "group"))
        until(lambda: len(counted) == 100)
        assert statistics.rules()["group"].engagements == 1


def test_a_failed_handler_alone_is_called_again_and_deadlines_are_judged_before_each_try(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(1)
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, "old", timestamp=1_000)
        producer.send_and_wait(topic, "new")
    calls: Counter[str] = Counter()

    def moody(record: Record) -> None:
        calls["moody"] += 1
        if calls["moody"] == 1:
            raise ValueError("not today")

    def steady(record: Record) -> None:
        calls["steady"] += 1

    runner = Runner(
        {"steady": steady, "moody": moody},
        bootstrap,
        topics=topic,
        group_id=group,
        retry=Retry(delay=0.01),
        degrade=[PastDeadline(max_age=3600), DropWhere(predicate=lambda record: record.value == b"none")],
        **SETTINGS,
    )
    with running(runner):
        until(lambda: calls["moody"] == 2)
        until(lambda: [(each.rule, each.records) for each in runner.degraded()] == [("past_deadline", 1)])
    assert calls == {"steady": 1, "moody": 2}


async def test_coroutines_are_degraded_and_replayed_alike(
    bootstrap: str, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(1)
    fill(bootstrap, topic, range(100))
    seen, messages = list[bytes](), list[bytes]()

    async def keep(record: Record) -> None:
        seen.append(record.value)

    async def send(record: Record) -> None:
        messages.append(record.value)

    runner = AsyncRunner(
        {"keep": keep, "sms": send},
        bootstrap,
        topics=topic,
        group_id=group,
        degrade=[SampleByKey(keep=0.5, handler="sms")],
        **SETTINGS,
    )
    run = asyncio.ensure_future(runner.run())
    await until_async(lambda: len(seen) == 100 and runner.degraded() != [])
    await until_async(lambda: len(messages) + sum(each.records for each in runner.degraded()) == 100)
    assert 0 < len(messages) < 100
    await asyncio.to_thread(order, bootstrap, group, "group", Order.ON)
    await asyncio.to_thread(replay, bootstrap, group)
    fill(bootstrap, topic, range(100, 110))
    await asyncio.to_thread(order, bootstrap, group, "group", Order.AUTO)
    await until_async(lambda: len(seen) == 110)
    await until_async(lambda: set(range(100)) <= set(map(int, messages)))
    assert sum(int(each) < 100 for each in messages) == 100
    runner.stop()
    await run


def test_each_record_is_handled_or_noted_when_a_runner_is_killed_again_and_again(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str, tmp_path: Path
) -> None:
    topic, path = new_topic(2), tmp_path / "handled"
    path.touch()
    total = 4_000

    def start() -> subprocess.Popen[bytes]:
        program = Path(__file__).with_name("worker.py")
        return subprocess.Popen([sys.executable, str(program), bootstrap, topic, group, str(path)])

    def lines() -> list[str]:
        return path.read_text().splitlines()

    for round_ in range(4):
        before = len(lines())
        worker = start()
        fill(bootstrap, topic, range(round_ * total // 4, (round_ + 1) * total // 4))
        try:
            until(lambda at=before: len(lines()) > at, "another record handled")  # type: ignore[misc]
        finally:
            worker.kill()
            worker.wait()
    worker = start()
    try:
        until(lambda: not unread(admin, topic, group), "the end of the topic")
        handled = {int(line.split()[1]) for line in lines()}
        dropped = account(bootstrap, admin, group)
        assert len(handled) + dropped.remaining == total  # never neither; by key, so never both either
        assert replay(bootstrap, group) == Outcome(dropped.remaining, 0)
        until(lambda: len({int(line.split()[1]) for line in lines()}) == total, "what was dropped")
    finally:
        worker.kill()
        worker.wait()
    assert {line.split()[0] for line in lines()} == {topic}


def unread(admin: Admin, topic: str, group: str) -> bool:
    ends = admin.offsets("latest", admin.partitions_of(topic))
    committed = admin.group_offsets(group)
    return any(committed.get(partition) != end for partition, end in ends.items())


def test_a_replay_that_is_killed_goes_on_and_sends_nothing_twice(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str, read_all: Callable[..., list[Record]]
) -> None:
    topic = new_topic(1)
    fill(bootstrap, topic, range(300))
    runner = Runner(
        lambda record: None,
        bootstrap,
        topics=topic,
        group_id=group,
        degrade=[SampleByKey(keep=0)],
        **SETTINGS,
    )
    with running(runner):
        until(lambda: account(bootstrap, admin, group).remaining == 300)
    target = f"{group}.replay"
    arguments = [
        sys.executable,
        "-m",
        "headrace.cli",
        "degrade",
        "replay",
        group,
        "--rate",
        "50",
        "-b",
        bootstrap,
    ]
    killed = subprocess.Popen(arguments)
    try:
        until(lambda: len(read_all(target)) >= 100)
    finally:
        killed.kill()
        killed.wait()
    done = subprocess.run(
        [*arguments[:-4], "-b", bootstrap], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(int(record.value or b"") for record in read_all(target)) == list(range(300))


def test_records_that_are_no_longer_there_are_reported_as_lost(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(1)
    fill(bootstrap, topic, range(20))
    runner = Runner(
        lambda record: None,
        bootstrap,
        topics=topic,
        group_id=group,
        degrade=[SampleByKey(keep=0)],
        **SETTINGS,
    )
    with running(runner):
        until(lambda: account(bootstrap, admin, group).remaining == 20)
    (partition,) = admin.partitions_of(topic)
    admin.delete_records({partition: 5})
    assert replay(bootstrap, group) == Outcome(15, 5)
    assert replay(bootstrap, group) == Outcome(0, 0)


def test_nothing_is_committed_while_it_cannot_be_written_down(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(1)
    rule = SampleByKey(keep=0)
    runner = Runner(
        print, bootstrap, topics=topic, group_id=group, degrade=[rule], commit_interval=0.1, **SETTINGS
    )
    with running(runner):
        until(lambda: is_listening(bootstrap, group))
        admin.set_topic_config(f"{group}.degraded", {"max.message.bytes": "10"})
        fill(bootstrap, topic, range(20))
        until(lambda: "so nothing is committed" in caplog.text)
        assert admin.group_offsets(group).get(TopicPartition(topic, 0)) is None
        assert runner.degraded() == []
        admin.set_topic_config(f"{group}.degraded", {"max.message.bytes": None})
        until(lambda: not unread(admin, topic, group))
        assert account(bootstrap, admin, group).remaining == 20


def test_the_metrics_port_tells_rules_and_drops(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    topic = new_topic(1)
    fill(bootstrap, topic, range(20))
    runner = Runner(
        lambda record: None,
        bootstrap,
        topics=topic,
        group_id=group,
        degrade=[SampleByKey(keep=0)],
        metrics="127.0.0.1:0",
        **SETTINGS,
    )
    with running(runner):
        until(lambda: sum(each.records for each in runner.degraded()) == 20)
        page = urllib.request.urlopen(f"http://127.0.0.1:{runner.metrics_port}/metrics").read().decode()
    labels = f'handler="",partition="0",rule="sample",topic="{topic}"'
    assert f"headrace_degraded_records_total{{{labels}}} 20.0" in page
    assert 'headrace_degrade_rule_engaged{rule="sample",state="engaged"} 1.0' in page
    assert 'headrace_degrade_rule_engaged{rule="group",state="off"} 0.0' in page


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"pattern": "orders.*", "degrade": []}, "need topics= rather than pattern="),
        ({"topics": "orders", "degrade": [], "metrics": "9465"}, "write HOST:PORT"),
        (
            {"topics": "orders", "degrade": [], "order": "partition", "start_offsets": lambda partitions: {}},
            "rather|not start_offsets",
        ),
    ],
)
def test_what_cannot_be_degraded_says_why(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Runner(print, "localhost:1", group_id="g", **settings)  # type: ignore[arg-type]


def test_an_unknown_rule_is_refused_with_the_nearest(bootstrap: str, new_topic: NewTopic, group: str) -> None:
    runner = Runner(
        print, bootstrap, topics=new_topic(1), group_id=group, degrade=[SampleByKey(keep=0.5)], **SETTINGS
    )
    with running(runner), Orders(bootstrap) as orders:
        until(lambda: is_listening(bootstrap, group))
        with pytest.raises(
            ConfigError, match=f"the group {group} has no rule 'sampel': did you mean 'sample'"
        ):
            orders.give(group, ["sampel"], Order.ON)
