"""Order per key, retries that hold up only their key, commits that never pass an unfinished record."""

from __future__ import annotations

import random
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client import DeserializationError, Record, Reject, Retry, TopicPartition, TryLater
from headrace.client.runner.schedule import Order, Schedule, Task

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def record(offset: int, key: str | None = None, partition: int = 0) -> Record:
    return Record("t", partition, offset, None if key is None else key.encode())


def filled(order: Order, *records: Record) -> Schedule:
    schedule = Schedule(order)
    for each in records:
        schedule.add(each)
    return schedule


def take_all(schedule: Schedule, now: float = 0.0) -> list[Task]:
    return list(iter(lambda: schedule.take(now), None))


def offsets(tasks: list[Task]) -> list[int]:
    return [task.record.offset for task in tasks]


def test_different_keys_run_together_and_the_same_key_one_after_the_other() -> None:
    schedule = filled("key", record(0, "a"), record(1, "b"), record(2, "a"))
    first, second = take_all(schedule)
    assert offsets([first, second]) == [0, 1]
    assert schedule.finish(first)
    assert offsets(take_all(schedule)) == [2]


def test_order_by_partition_and_no_order_are_choices() -> None:
    records = [record(0), record(1), record(0, partition=1)]
    assert offsets(take_all(filled("partition", *records))) == [0, 0]
    assert offsets(take_all(filled("none", record(0, "a"), record(1, "a")))) == [0, 1]


def test_records_without_a_key_do_not_wait_for_each_other() -> None:
    assert offsets(take_all(filled("key", record(0), record(1)))) == [0, 1]


def test_only_the_finished_beginning_may_be_committed() -> None:
    schedule = filled("none", *(record(offset) for offset in (10, 12, 15)))
    ten, twelve, fifteen = take_all(schedule)
    schedule.finish(fifteen)
    schedule.finish(twelve)
    assert schedule.committable() == {}
    assert schedule.load() == {P0: 3}
    schedule.finish(ten)
    assert schedule.committable() == {P0: 16}
    assert schedule.load() == {P0: 0}


def test_a_retry_holds_up_its_own_key_only() -> None:
    schedule = filled("key", record(0, "a"), record(1, "a"), record(2, "b"))
    failing, other = take_all(schedule)
    schedule.retry(failing, due=5.0)
    schedule.finish(other)
    schedule.add(record(3, "b"))
    assert offsets(take_all(schedule, now=4.9)) == [3]
    assert schedule.next_due() == 5.0
    assert offsets(take_all(schedule, now=5.0)) == [0]
    assert schedule.committable() == {}


def test_a_partition_taken_away_starts_nothing_more_but_counts_what_finishes() -> None:
    schedule = filled("key", record(0, "a"), record(1, "a"), record(2, "b"), record(0, "x", partition=1))
    running = schedule.take(0.0)
    assert running is not None
    schedule.stop([P0])
    assert schedule.busy([P0])
    assert [task.record.topic_partition for task in take_all(schedule)] == [P1]
    assert not schedule.finish(running)
    assert schedule.committable() == {P0: 1}
    assert not schedule.busy([P0])


def test_a_partition_taken_away_fills_the_gaps_before_what_is_finished() -> None:
    schedule = filled("key", record(0, "a"), record(1, "a"), record(2, "b"), record(3, "a"))
    zero, two = take_all(schedule)
    schedule.finish(two)
    schedule.stop([P0])
    assert schedule.finish(zero)
    one = take_all(schedule)
    assert offsets(one) == [1]
    assert not schedule.finish(one[0])
    assert not schedule.busy([P0])
    assert schedule.committable() == {P0: 3}


def test_a_partition_taken_away_does_not_wait_for_a_record_that_keeps_failing() -> None:
    schedule = filled("key", record(0, "a"), record(1, "b"), record(2, "c"), record(3, "d"))
    zero, one, two, three = take_all(schedule)
    schedule.finish(three)
    schedule.retry(one, due=60.0)
    schedule.stop([P0])
    assert schedule.busy([P0])
    schedule.finish(two)
    schedule.retry(zero, due=60.0)
    assert not schedule.busy([P0])
    assert schedule.committable() == {}


def test_a_record_that_ends_the_run_holds_nothing_up() -> None:
    schedule = filled("key", record(0, "a"), record(1, "b"))
    zero, one = take_all(schedule)
    schedule.abandon(one)
    schedule.finish(zero)
    assert not schedule.busy([P0])
    assert schedule.committable() == {P0: 1}


def test_a_retry_after_the_partition_has_gone_is_dropped() -> None:
    schedule = filled("key", record(0, "a"))
    running = take_all(schedule)[0]
    schedule.forget([P0])
    schedule.retry(running, due=0.0)
    assert take_all(schedule, now=9.0) == []


def test_what_still_runs_from_an_earlier_assignment_does_not_count_in_the_next() -> None:
    schedule = filled("key", record(0, "a"))
    old = take_all(schedule)[0]
    schedule.forget([P0])
    schedule.add(record(0, "a"))
    new = take_all(schedule)[0]
    schedule.finish(old)
    assert schedule.committable() == {}
    schedule.finish(new)
    assert schedule.committable() == {P0: 1}


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000), order=st.sampled_from(["key", "partition", "none"]))
def test_whatever_happens_order_holds_and_nothing_unfinished_is_committed(seed: int, order: Order) -> None:
    chance = random.Random(seed)
    schedule = Schedule(order)
    now, added, running = 0.0, 0, []
    finished: dict[int, list[int]] = defaultdict(list)
    last_of_key: dict[tuple[int, str], int] = {}
    next_offset = [0, 0]
    outstanding: list[set[int]] = [set(), set()]
    while added < 60 or running or any(outstanding):
        now += 1
        if added < 60 and chance.random() < 0.5:
            partition = chance.randrange(2)
            offset = next_offset[partition] = next_offset[partition] + chance.randint(1, 3)
            schedule.add(record(offset, chance.choice("abc"), partition))
            outstanding[partition].add(offset)
            added += 1
        if chance.random() < 0.7 and (task := schedule.take(now)) is not None:
            running.append(task)
        if running and chance.random() < 0.6:
            task = running.pop(chance.randrange(len(running)))
            if chance.random() < 0.2:
                schedule.retry(task, now + chance.randint(0, 5))
                continue
            schedule.finish(task)
            done = task.record
            outstanding[done.partition].discard(done.offset)
            finished[done.partition].append(done.offset)
            key = (done.partition, "" if order == "partition" else str(done.raw_key))
            if order != "none":
                assert done.offset > last_of_key.get(key, -1)
                last_of_key[key] = done.offset
        for (_, partition), committed in schedule.committable().items():
            assert all(offset >= committed for offset in outstanding[partition])
    for partition in (0, 1):
        if finished[partition]:
            assert schedule.committable()[TopicPartition("t", partition)] == max(finished[partition]) + 1


def test_delays_grow_to_a_limit_and_attempts_end() -> None:
    retry = Retry(attempts=4, delay=1, factor=3, max_delay=5, jitter=0)
    error = ValueError()
    assert [retry.next_delay(attempt, attempt, error) for attempt in (1, 2, 3, 4)] == [1, 3, 5, None]


def test_delays_stay_at_their_limit_however_fast_they_grow() -> None:
    assert Retry(delay=1, factor=1e9, max_delay=5, jitter=0).delay_after(1_000) == 5
    assert Retry(delay=0, jitter=0).delay_after(1_000) == 0


def test_what_cannot_help_is_not_tried_again_and_what_is_nobodys_fault_is_not_counted() -> None:
    retry = Retry(attempts=3, delay=1, jitter=0, give_up_on=(KeyError,))
    assert retry.next_delay(1, 1, KeyError()) is None
    assert retry.next_delay(1, 1, Reject("no")) is None
    assert retry.next_delay(1, 1, DeserializationError("no")) is None
    assert retry.next_delay(3, 9, TryLater("busy", delay=7)) == 7
    assert retry.next_delay(3, 3, TryLater("busy")) == 4
