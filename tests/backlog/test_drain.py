"""Draining a backlog with the handler that reads the topic, exactly up to the cut."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from headrace.backlog import Backlogs, State, Way, drain, drain_async
from headrace.backlog.draining import Slots
from headrace.client import Admin, ConfigError, Producer, Record, Runner, TopicPartition
from tests.waiting import until

Write = Callable[[str, int, int], None]
QUICK = {"heartbeat_interval_ms": 200, "session_timeout_ms": 6000}


def test_a_runner_ends_at_given_offsets_and_handles_nothing_after_them(
    bootstrap: str, admin: Admin, group: str, behind: str
) -> None:
    handled: Counter[tuple[int, int]] = Counter()

    def handle(record: Record) -> None:
        handled[record.partition, record.offset] += 1

    ends = {TopicPartition(behind, 0): 12, TopicPartition(behind, 1): 5}
    Runner(handle, bootstrap, topics=behind, group_id=group, until=ends, **QUICK).run()
    assert handled == Counter((0, offset) for offset in range(5, 12))
    assert admin.group_offsets(group) == ends


def test_a_runner_ends_where_markers_of_a_transaction_are_all_that_is_left(
    bootstrap: str, admin: Admin, group: str, behind: str
) -> None:
    with (
        Producer(bootstrap, delivery="exactly_once", transactional_id=f"{group}-t") as producer,
        producer.transaction(),
    ):
        producer.send_and_wait(behind, "last", partition=0)
    ends = admin.offsets("latest", admin.partitions_of(behind))
    values = []
    Runner(
        lambda record: values.append(record.value),
        bootstrap,
        topics=behind,
        group_id=group,
        until=ends,
        **QUICK,
    ).run()
    assert len(values) == 91
    assert b"last" in values


@pytest.mark.parametrize("way", [Way.OFFSETS, Way.COPY])
def test_several_drain_a_backlog_together_and_all_of_them_end(
    bootstrap: str, backlogs: Backlogs, group: str, behind: str, write: Write, way: Way
) -> None:
    divert = backlogs.divert(group, behind, way, settle=0)
    write(behind, 100, 140)
    handled: Counter[bytes] = Counter()
    lock = threading.Lock()

    def handle(record: Record) -> None:
        with lock:
            handled[record.raw_value or b""] += 1

    drains = [
        threading.Thread(target=lambda: drain(handle, bootstrap, group=group, topic=behind, **QUICK))
        for _ in range(2)
    ]
    for each in drains:
        each.start()
    for each in drains:
        each.join(120)
        assert not each.is_alive()
    assert sum(handled.values()) == divert.records == 90
    assert set(handled.values()) == {1}
    assert not any(int(value) >= 100 for value in handled)
    until(lambda: not backlogs.site.members(divert.backlog_group), "the end of the group")
    joined = backlogs.join(group, behind)
    assert joined.state is State.JOINED
    assert joined.proof["handled_twice"] == 0


async def test_a_coroutine_drains_a_backlog(
    bootstrap: str, backlogs: Backlogs, group: str, behind: str
) -> None:
    backlogs.divert(group, behind, settle=0)
    handled = []

    async def handle(record: Record) -> None:
        handled.append(record.offset)

    await drain_async(handle, bootstrap, group=group, topic=behind, rate=2000, **QUICK)
    assert len(handled) == 90


def test_a_rate_spreads_the_records_over_time_and_makes_up_for_nothing() -> None:
    now = 100.0
    slots = Slots(4, lambda: now)
    assert [slots.take() for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    now = 101.0
    assert slots.take() == 0.0
    now = 110.0
    assert [slots.take() for _ in range(2)] == [0.0, 0.25]
    with pytest.raises(ConfigError, match="records per second above 0"):
        Slots(0)


def test_there_is_nothing_to_drain_without_a_divert(
    bootstrap: str, backlogs: Backlogs, group: str, behind: str
) -> None:
    with pytest.raises(ConfigError, match="it is not diverted"):
        drain(print, bootstrap, group=group, topic=behind)
    backlogs.divert(group, behind, Way.FRESH)
    with pytest.raises(ConfigError, match="the group itself drains it"):
        drain(print, bootstrap, group=group, topic=behind)
    backlogs.undo(group, behind, quiet=0.1)
