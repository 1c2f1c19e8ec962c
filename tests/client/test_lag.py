"""How far behind a group is, and which way it is going."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from headrace.client import Admin, Consumer, GroupLag, Producer, TopicPartition
from headrace.client.lag import LagMonitor, PartitionLag
from headrace.client.lag_states import LagState, worst

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
        assert (caught_up.records, caught_up.state, caught_up.seconds_to_catch_up) == (0, "ok", 0.0)
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


def test_the_state_follows_a_simple_group(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer, LagMonitor(bootstrap, window=1.0) as monitor:

        def until(state: LagState) -> GroupLag:
            deadline = time.monotonic() + 60
            while (lag := monitor.measure(group)).state != state:
                assert time.monotonic() < deadline, lag
                time.sleep(0.05)
            return lag

        for _ in range(20):
            producer.send_and_wait(topic, "x")
        admin.set_group_offsets(group, {partition: 2})
        assert monitor.measure(group).state == LagState.UNKNOWN
        stalled = until(LagState.STALLED)
        assert (stalled.kind, stalled.members, stalled.rate_out) == ("simple", 0, 0)
        admin.set_group_offsets(group, {partition: 15})
        draining = monitor.measure(group)
        assert draining.state == LagState.DRAINING
        assert draining.seconds is not None
        assert draining.seconds_to_catch_up is not None
        admin.set_group_offsets(group, {partition: 4})
        assert monitor.measure(group).state == LagState.REWOUND
        admin.set_group_offsets(group, {partition: 20})
        assert until(LagState.OK).records == 0
        admin.delete_group(group)
        assert monitor.measure(group).state == LagState.GONE


def test_partitions_that_wait_for_their_reader_do_not_hide_when_the_group_has_caught_up() -> None:
    def of(number: int, records: int, state: LagState, trend: float | None) -> PartitionLag:
        return PartitionLag(TopicPartition("orders", number), 0, records, records, 1.0, state, trend)

    def left(*partitions: PartitionLag) -> float | None:
        return GroupLag(
            "billing", 0.0, partitions, worst(each.state for each in partitions)
        ).seconds_to_catch_up

    draining = of(0, 500, LagState.DRAINING, -100.0)
    assert left(draining) == 5
    assert left(draining, of(1, 1000, LagState.UNKNOWN, 0.0)) == 15, "its turn comes: 1,500 at 100 a second"
    assert left(draining, of(1, 1000, LagState.UNKNOWN, None)) == 15
    assert left(draining, of(1, 1000, LagState.STALLED, 0.0)) is None
    assert left(draining, of(1, 1000, LagState.GROWING, 10.0)) is None
    assert left(of(0, 500, LagState.UNKNOWN, 0.0), of(1, 1000, LagState.UNKNOWN, 0.0)) is None
    assert left() is None


def test_reading_too_slowly_is_growing(bootstrap: str, admin: Admin, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer, LagMonitor(bootstrap, window=1.0) as monitor:
        for _ in range(500):
            producer.send_and_forget(topic, "x")
        producer.flush()
        committed = 0
        deadline = time.monotonic() + 60
        while True:
            admin.set_group_offsets(group, {partition: committed})
            for _ in range(3):
                producer.send_and_wait(topic, "x")
            lag = monitor.measure(group)
            if lag.state == LagState.GROWING:
                break
            assert time.monotonic() < deadline, lag
            committed += 1
        assert lag.trend is not None
        assert lag.trend > 0
        assert lag.rate_in is not None
        assert lag.rate_out is not None
        assert lag.rate_in > lag.rate_out
        assert lag.seconds_to_catch_up is None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_whose_members_left_is_gone_once_there_is_something_to_read(
    bootstrap: str, new_topic: NewTopic, group: str, protocol: str
) -> None:
    topic = new_topic()
    settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    with Producer(bootstrap) as producer, LagMonitor(bootstrap) as monitor:
        producer.send_and_wait(topic, "x")
        with Consumer[bytes, bytes]({"bootstrap.servers": bootstrap, **settings}) as consumer:
            consumer.subscribe(topic)
            deadline = time.monotonic() + 60
            while not list(consumer.poll(0.2)):
                assert time.monotonic() < deadline
            consumer.commit()
            lag = monitor.measure(group)
            assert (lag.state, lag.kind, lag.members, lag.records) == (LagState.OK, protocol, 1, 0)
            assert lag.partitions[0].member is not None
        assert monitor.measure(group).state == LagState.OK
        producer.send_and_wait(topic, "y")
        gone = monitor.measure(group)
        assert (gone.state, gone.members) == (LagState.GONE, 0)


def test_what_retention_will_delete_unread_is_foretold(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    an_hour = new_topic(retention_ms="3600000")
    small = new_topic(retention_bytes="1000")
    compacted = new_topic(cleanup_policy="compact", retention_ms="3600000")
    forever = new_topic()
    now = int(time.time() * 1000)
    with Producer(bootstrap) as producer:
        for topic in (an_hour, small, compacted, forever):
            for _ in range(20):
                producer.send_and_wait(topic, "x" * 100, key="k", timestamp=now - 600_000)
    admin.set_group_offsets(group, {TopicPartition(t, 0): 0 for t in (an_hour, small, compacted, forever)})
    with LagMonitor(bootstrap) as monitor:
        lag = monitor.measure(group)
        left = {each.partition.topic: each.seconds_until_loss for each in lag.partitions}
        assert left[an_hour] == pytest.approx(3000, abs=60)
        assert left[small] == 0
        assert (left[compacted], left[forever]) == (None, None)
        assert lag.seconds_until_loss == 0


def test_records_deleted_unread_are_lost(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        for _ in range(9):
            producer.send_and_wait(topic, "x")
    admin.set_group_offsets(group, {partition: 2})
    admin.delete_records({partition: 6})
    with LagMonitor(bootstrap) as monitor:
        [lag] = monitor.measure(group).partitions
        assert (lag.committed, lag.records, lag.lost) == (2, 3, 4)


def test_an_open_transaction_does_not_hold_up_a_measurement(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    """Its records cannot be read yet, so their age is not known; nobody waits for them."""
    topic = new_topic()
    with Producer(bootstrap, transactional_id=f"t-{group}") as producer, producer.transaction():
        producer.send_and_wait(topic, "x")
        admin.set_group_offsets(group, {TopicPartition(topic, 0): 0})
        with LagMonitor(bootstrap) as monitor:
            [lag] = monitor.measure(group).partitions
            assert (lag.records, lag.seconds) == (1, None)
