"""How far behind a group is, and which way it is going."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from headrace.client import Admin, Producer, TopicPartition
from headrace.client.lag import LagMonitor, _state

NewTopic = Callable[..., str]


def test_lag_is_counted_in_records_and_in_seconds(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    now = int(time.time() * 1000)
    with Producer(bootstrap) as producer:
        for age in (400, 300, 200):
            producer.send_and_wait(topic, "x", partition=0, timestamp=now - age * 1000)
        producer.send_and_wait(topic, "x", partition=1, timestamp=now - 50_000)
    admin.set_group_offsets(group, {first: 1, second: 1})
    with LagMonitor(bootstrap) as monitor:
        lag = monitor.measure(group)
        by_partition = {each.partition: each for each in lag.partitions}
        assert (by_partition[first].records, by_partition[second].records) == (2, 0)
        assert by_partition[first].seconds == pytest.approx(300, abs=30)
        assert by_partition[second].seconds == 0
        assert (lag.records, lag.state) == (2, "unknown")
        admin.set_group_offsets(group, {first: 3})
        caught_up = monitor.measure(group)
        assert (caught_up.records, caught_up.state, caught_up.seconds_to_catch_up) == (0, "caught up", 0.0)
        assert caught_up.trend is not None
        assert caught_up.trend < 0


def test_nobody_knows_how_far_a_group_is_that_has_committed_nothing(bootstrap: str, group: str) -> None:
    with LagMonitor(bootstrap) as monitor:
        lag = monitor.measure(group)
        assert (lag.records, lag.state, lag.seconds_to_catch_up) == (0, "unknown", None)


def test_topics_without_a_commit_are_behind_by_all_they_hold(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    with Producer(bootstrap) as producer:
        for _ in range(5):
            producer.send_and_forget(topic, "x")
    with LagMonitor(bootstrap) as monitor:
        assert monitor.measure(group, [topic]).records == 5
        admin.delete_records({TopicPartition(topic, 0): 2})
        [lag] = monitor.measure(group, [topic]).partitions
        assert (lag.committed, lag.records) == (None, 3)


def test_the_trend_follows_the_group(bootstrap: str, admin: Admin, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer, LagMonitor(bootstrap) as monitor:
        for _ in range(20):
            producer.send_and_wait(topic, "x")
        admin.set_group_offsets(group, {partition: 0})
        monitor.measure(group)
        assert monitor.measure(group).state == "stalled"
        admin.set_group_offsets(group, {partition: 15})
        lag = monitor.measure(group)
        assert lag.state == "draining"
        assert lag.seconds is not None
        assert lag.seconds_to_catch_up is not None
        for _ in range(40):
            producer.send_and_wait(topic, "x")
        assert monitor.measure(group).state == "growing"


def test_states_are_told_apart() -> None:
    assert _state(0, 5, 5) == "caught up"
    assert _state(10, None, None) == "unknown"
    assert _state(10, 0, 0) == "stalled"
    assert _state(10, 0.5, 100) == "steady"
    assert _state(10, 5, 100) == "growing"
    assert _state(10, -5, 100) == "draining"
