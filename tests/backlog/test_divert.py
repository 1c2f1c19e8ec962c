"""Diverting by a cut, joining and undoing: what each does to the offsets of both groups, and when it is refused."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest

from headrace.backlog import Backlogs, Divert, State, Way
from headrace.client import (
    Admin,
    AsyncRunner,
    BrokerError,
    Consumer,
    Producer,
    Record,
    Runner,
    TopicPartition,
)
from headrace.client.administration.errors import NotPossible
from headrace.client.administration.group_offsets import Committed
from headrace.client.scan import scan
from tests.waiting import until, until_async

Write = Callable[[str, int, int], None]


def offsets(admin: Admin, group: str, topic: str) -> dict[int, int]:
    found = admin.group_offsets(group)
    return {each.partition: offset for each, offset in found.items() if each.topic == topic}


def ends(admin: Admin, topic: str) -> dict[int, int]:
    return {each.partition: end for each, end in admin.offsets("latest", admin.partitions_of(topic)).items()}


def stand_at(admin: Admin, group: str, topic: str, places: dict[int, int]) -> None:
    admin.set_group_offsets(group, {TopicPartition(topic, number): each for number, each in places.items()})


def test_the_group_goes_on_from_the_cut_and_the_other_one_owns_what_lies_before(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, write: Write
) -> None:
    cut = ends(admin, behind)
    divert = backlogs.divert(group, behind, settle=0)
    write(behind, 100, 120)
    assert divert.state is State.DIVERTED
    assert divert.cut == cut
    assert offsets(admin, group, behind) == cut
    assert offsets(admin, f"{group}.backlog", behind) == {0: 5, 1: 5}
    assert backlogs.divert(group, behind).id == divert.id, "run again, it finds everything done"


def test_a_join_is_refused_while_backlog_is_left_and_proves_by_offsets_that_none_is(
    backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    divert = backlogs.divert(group, behind, settle=0)
    stand_at(admin, divert.backlog_group, behind, {0: divert.cut[0], 1: divert.cut[1] - 1})
    with pytest.raises(NotPossible, match=r"1 records of .* left to read .*1: 1"):
        backlogs.join(group, behind)
    stand_at(admin, divert.backlog_group, behind, {0: divert.cut[0] + 3, 1: divert.cut[1]})
    joined = backlogs.join(group, behind)
    assert joined.state is State.JOINED
    assert joined.proof["handled_twice"] == 3
    assert joined.proof["group"] == {str(number): cut for number, cut in divert.cut.items()}
    assert divert.backlog_group not in admin.groups()
    assert backlogs.join(group, behind).state is State.JOINED, "run again, it finds everything done"
    assert offsets(admin, group, behind) == divert.cut


def test_a_join_speaks_of_what_is_left_before_it_speaks_of_who_reads_it(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, bootstrap: str
) -> None:
    divert = backlogs.divert(group, behind, settle=0)
    with Consumer(bootstrap, group_id=divert.backlog_group, enable_auto_commit=False) as reader:
        reader.subscribe(behind)
        until(lambda: reader.poll(0.1), "a member with partitions")
        with pytest.raises(NotPossible, match="left to read"):
            backlogs.join(group, behind)
        reader.commit({TopicPartition(behind, number): cut for number, cut in divert.cut.items()})
        with pytest.raises(NotPossible, match=r"has a member .*stop it before the join"):
            backlogs.join(group, behind)
    assert backlogs.join(group, behind, wait=60).state is State.JOINED


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_divert_is_refused_while_the_group_has_members(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str, protocol: str
) -> None:
    with Consumer(bootstrap, group_id=group, group_protocol=protocol, enable_auto_commit=False) as member:
        member.subscribe(behind)
        until(lambda: member.poll(0.1), "a member with partitions")
        before = offsets(admin, group, behind)
        with pytest.raises(NotPossible, match=r"has a member .*Stop them"):
            backlogs.divert(group, behind)
        assert offsets(admin, group, behind) == before
        assert backlogs.diverts(group) == []
        assert f"{group}.backlog" not in admin.groups()
        leaving = threading.Thread(target=member.close)
        leaving.start()
        divert = backlogs.divert(group, behind, wait=90, settle=0)
        leaving.join()
        assert offsets(admin, group, behind) == divert.cut


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_runners_that_agree_to_diverts_step_aside_and_come_back_at_the_cut(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str, write: Write, protocol: str
) -> None:
    slow, seen = threading.Event(), []
    settings = {"group_id": group, "topics": behind, "diverts": True, "group_protocol": protocol}

    def handle(record: Record) -> None:
        slow.wait(0.2)
        seen.append((record.partition, record.offset))

    async def handle_async(record: Record) -> None:
        await asyncio.sleep(0 if slow.is_set() else 0.2)
        seen.append((record.partition, record.offset))

    ordinary = Runner(handle, bootstrap, order="partition", **settings)  # type: ignore[arg-type]
    running = threading.Thread(target=ordinary.run)
    running.start()
    awaited = AsyncRunner(handle_async, bootstrap, order="partition", **settings)  # type: ignore[arg-type]
    task = asyncio.ensure_future(awaited.run())
    await until_async(lambda: {number for number, _ in seen} == {0, 1}, "both runners at work")
    divert = await asyncio.to_thread(backlogs.divert, group, behind, wait=90, settle=0)
    assert divert.state is State.DIVERTED
    before = set(seen)
    slow.set()
    await asyncio.to_thread(write, behind, 100, 120)
    await until_async(lambda: len(set(seen) - before) >= 20, "the new records")
    ordinary.stop()
    awaited.stop()
    await task
    await asyncio.to_thread(running.join)
    assert len(seen) == len(set(seen)), "nothing is handled twice"
    for number, offset in before:
        assert offset < divert.before[number], "what was handled before is none of the backlog"
    for number, offset in set(seen) - before:
        assert offset >= divert.cut[number], "what is handled after is none of the backlog"
    assert len(before) == sum(at - 5 for at in divert.before.values())


@pytest.mark.parametrize("kind", [Runner, AsyncRunner])
def test_a_runner_that_is_stopped_while_it_steps_aside_does_not_come_back(
    bootstrap: str,
    backlogs: Backlogs,
    admin: Admin,
    group: str,
    behind: str,
    kind: type[Runner] | type[AsyncRunner],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    joins: list[str] = []
    subscribe = Consumer.subscribe

    def counted(consumer: Consumer, *topics: str, **callbacks: Any) -> None:
        joins.extend(topics)
        subscribe(consumer, *topics, **callbacks)

    monkeypatch.setattr(Consumer, "subscribe", counted)

    async def handle_async(record: Record) -> None:
        """Nothing to do."""

    handle = handle_async if kind is AsyncRunner else lambda record: None
    runner = kind(handle, bootstrap, group_id=group, topics=behind, diverts=True)  # type: ignore[arg-type]
    ended = runner.run if isinstance(runner, Runner) else lambda: asyncio.run(runner.run())
    running = threading.Thread(target=ended)
    running.start()
    until(lambda: group in admin.groups() and backlogs.site.members(group), "the runner in its group")
    with backlogs._register.writing(group, behind) as writer:
        asking = writer.put(Divert(group, behind, Way.OFFSETS, State.PREPARING, {}, {}))
        until(lambda: not backlogs.site.members(group), "the runner aside")
        runner.stop()
        running.join()
        writer.put(asking.becomes(State.UNDONE))
    assert joins == [behind]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_joins_while_the_cut_is_committed_makes_the_divert_be_given_up(
    bootstrap: str,
    backlogs: Backlogs,
    admin: Admin,
    group: str,
    behind: str,
    protocol: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Consumer(bootstrap, group_id=group, group_protocol=protocol) as member:
        move = backlogs.site.move

        def joined_by_then(who: str, *about: object) -> None:
            if who == group:
                member.subscribe(behind)
                until(lambda: member.poll(0.1), "a member with partitions")
            move(who, *about)  # type: ignore[arg-type]

        monkeypatch.setattr(backlogs.site, "move", joined_by_then)
        monkeypatch.setattr(backlogs.site, "check_stopped", lambda *about: None)
        with pytest.raises(NotPossible, match="has members again"):
            backlogs.divert(group, behind, settle=0)
    assert backlogs.diverts(group)[0].state is State.UNDONE
    assert f"{group}.backlog" not in admin.groups()
    assert max(offsets(admin, group, behind).values()) < 100


def test_a_consumer_outside_the_group_that_commits_across_the_cut_makes_the_divert_be_undone(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    simple = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    move = backlogs.site.move

    def and_then_it_commits(who: str, *about: object) -> None:
        move(who, *about)  # type: ignore[arg-type]
        if who == group:
            place = confluent_kafka.TopicPartition(behind, 0, 9)
            simple.commit(offsets=[place], asynchronous=False)

    monkeypatch.setattr(backlogs.site, "move", and_then_it_commits)
    with pytest.raises(NotPossible, match="Somebody still commits for group"):
        backlogs.divert(group, behind, settle=0)
    simple.close()
    assert offsets(admin, group, behind) == {0: 9, 1: 5}
    assert backlogs.diverts(group)[0].state is State.UNDONE


def test_a_divert_waits_for_a_transaction_that_may_still_commit_offsets_of_the_group(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{group}-t"})
    producer.init_transactions(90)
    producer.begin_transaction()
    metadata = consumer.consumer_group_metadata()
    consumer.close()
    place = confluent_kafka.TopicPartition(behind, 0, 20)
    producer.send_offsets_to_transaction([place], metadata, 90)
    diverted: list[Divert] = []
    diverting = threading.Thread(target=lambda: diverted.append(backlogs.divert(group, behind, settle=0)))
    asked = threading.Event()
    committed = backlogs.site.committed

    def told(*about: str) -> dict[int, Committed]:
        try:
            return committed(*about)
        except BrokerError:
            asked.set()
            raise

    backlogs.site.committed = told  # type: ignore[method-assign]
    diverting.start()
    assert asked.wait(90), "a refusal while the transaction is open"
    producer.commit_transaction(90)
    diverting.join()
    assert diverted[0].before == {0: 20, 1: 5}


def test_a_group_without_a_backlog_or_without_offsets_has_nothing_to_divert(
    backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    with pytest.raises(NotPossible, match="committed nothing"):
        backlogs.divert("nobody", behind)
    stand_at(admin, group, behind, ends(admin, behind))
    with pytest.raises(NotPossible, match="no backlog to divert"):
        backlogs.divert(group, behind)
    with pytest.raises(NotPossible, match="There is no topic 'nowhere'"):
        backlogs.divert(group, "nowhere")
    with pytest.raises(NotPossible, match="is not diverted"):
        backlogs.join(group, behind)


def test_undoing_takes_the_group_back_to_where_it_was(
    backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    backlogs.divert(group, behind, settle=0)
    assert backlogs.undo(group, behind).state is State.UNDONE
    assert offsets(admin, group, behind) == {0: 5, 1: 5}
    assert f"{group}.backlog" not in admin.groups()
    assert backlogs.divert(group, behind, settle=0).state is State.DIVERTED, "and it can be diverted again"


def test_undoing_skips_nothing_and_says_so_before_it_repeats_something(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, write: Write
) -> None:
    divert = backlogs.divert(group, behind, settle=0)
    write(behind, 100, 130)
    ahead = ends(admin, behind)
    stand_at(admin, divert.backlog_group, behind, {0: 20, 1: divert.cut[1]})
    stand_at(admin, group, behind, ahead)
    again = ahead[0] - divert.cut[0]
    with pytest.raises(NotPossible, match=f"handled {again} records after the cut in partitions 0"):
        backlogs.undo(group, behind)
    assert offsets(admin, group, behind) == ahead
    backlogs.undo(group, behind, allow_repeats=True)
    assert offsets(admin, group, behind) == {0: 20, 1: ahead[1]}


def test_a_join_is_refused_when_somebody_has_moved_the_group_back_before_the_cut(
    backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    divert = backlogs.divert(group, behind, settle=0)
    stand_at(admin, divert.backlog_group, behind, divert.cut)
    stand_at(admin, group, behind, {0: 7})
    with pytest.raises(NotPossible, match=r"stands before the cut .*partition 0 at 7"):
        backlogs.join(group, behind)
    assert backlogs.join(group, behind, allow_repeats=True).state is State.JOINED


def test_a_join_is_refused_when_retention_has_deleted_what_nobody_read(
    backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    divert = backlogs.divert(group, behind, settle=0)
    admin.delete_records({TopicPartition(behind, number): cut for number, cut in divert.cut.items()})
    lost = sum(divert.cut.values()) - 10
    with pytest.raises(NotPossible, match=f"{lost} records were deleted by retention"):
        backlogs.join(group, behind)
    assert backlogs.join(group, behind, allow_loss=True).proof["lost"] == lost


def test_markers_of_transactions_at_the_end_of_a_backlog_are_nothing_to_read(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    with (
        Producer(bootstrap, delivery="exactly_once", transactional_id=f"{group}-t") as producer,
        producer.transaction(),
    ):
        for partition in range(2):
            producer.send_and_wait(behind, "in a transaction", partition=partition)
    divert = backlogs.divert(group, behind, settle=0)
    last = {number: cut - 1 for number, cut in divert.cut.items()}
    stand_at(admin, divert.backlog_group, behind, {number: offset - 1 for number, offset in last.items()})
    with pytest.raises(NotPossible, match="left to read"):
        backlogs.join(group, behind)
    stand_at(admin, divert.backlog_group, behind, last)
    assert backlogs.join(group, behind).state is State.JOINED


def test_the_copy_holds_exactly_the_backlog_in_order_with_keys_headers_and_times(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str, write: Write
) -> None:
    divert = backlogs.divert(group, behind, Way.COPY, settle=0)
    write(behind, 100, 120)
    connection = {"bootstrap.servers": bootstrap}

    def records(topic: str, starts: dict[int, int], cut: dict[int, int]) -> list[tuple[object, ...]]:
        found = scan(
            connection,
            {TopicPartition(topic, number): start for number, start in starts.items()},
            ends={TopicPartition(topic, number): end for number, end in cut.items()},
        )
        return sorted(
            (each.partition, each.offset, each.raw_key, each.raw_value, each.timestamp, each.headers)
            for each in found
        )

    originals = records(behind, {0: 5, 1: 5}, divert.cut)
    copies = records(divert.copy, {0: 0, 1: 0}, ends(admin, divert.copy))
    assert [(p, *rest) for p, _, *rest, _ in copies] == [(p, *rest) for p, _, *rest, _ in originals]
    for (_, offset, *_, headers), (*_, with_offset) in zip(originals, copies, strict=True):
        assert with_offset == (*headers, ("headrace.backlog.offset", str(offset).encode()))
    assert offsets(admin, divert.backlog_group, divert.copy) == {0: 0, 1: 0}
    assert offsets(admin, group, behind) == divert.cut

    stand_at(admin, divert.backlog_group, divert.copy, {0: 4, 1: 4})
    assert backlogs.undo(group, behind).state is State.UNDONE
    assert offsets(admin, group, behind) == {0: 9, 1: 9}, "it goes on where the copy was read to"
    until(lambda: divert.copy not in admin.topics(), "the end of the copy")


def test_both_sides_are_measured_each_to_its_own_end(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, write: Write
) -> None:
    divert = backlogs.divert(group, behind, settle=0)
    write(behind, 100, 125)
    with backlogs.meter(60.0) as meter:
        status = meter.look(divert)
        new, backlog = status.sides
        assert (new.lag.group_id, new.unread) == (group, 25)
        assert (backlog.lag.group_id, backlog.unread) == (divert.backlog_group, divert.records)
        assert "Nobody drains the backlog" in status.next_step
        half = {number: cut - 10 for number, cut in divert.cut.items()}
        stand_at(admin, divert.backlog_group, behind, half)
        backlog = meter.look(divert).sides[1]
        assert backlog.unread == 20
        assert backlog.lag.rate_out is not None
        assert backlog.lag.rate_out > 0
        assert backlog.lag.seconds_to_catch_up is not None
        stand_at(admin, divert.backlog_group, behind, {0: divert.cut[0] + 4, 1: divert.cut[1]})
        status = meter.look(divert)
        assert status.sides[1].drained
        assert "4 records past the cut" in status.notes[0]
        assert "headrace backlog join" in status.next_step


@pytest.mark.parametrize("way", [Way.OFFSETS, Way.COPY])
def test_a_backlog_whose_beginning_is_deleted_is_diverted_from_the_first_record_there_is(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, way: Way
) -> None:
    admin.delete_records({TopicPartition(behind, 0): 20})
    divert = backlogs.divert(group, behind, way, settle=0)
    assert divert.state is State.DIVERTED
    assert divert.before == {0: 20, 1: 5}
    assert offsets(admin, group, behind) == divert.cut


@pytest.mark.parametrize("filling", ["compressible", "random"])
def test_records_as_large_as_the_topic_takes_are_copied(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str, filling: str
) -> None:
    limit = 2_000_000
    admin.set_topic_config(behind, {"max.message.bytes": str(limit)})
    value = b"a" * 3 * limit if filling == "compressible" else os.urandom(limit - 100)
    with Producer(bootstrap, compression_type="gzip", max_request_size=4 * limit) as producer:
        producer.send_and_wait(behind, value, partition=0)
    divert = backlogs.divert(group, behind, Way.COPY, settle=0)
    copied = scan({"bootstrap.servers": bootstrap}, {TopicPartition(divert.copy, 0): None})
    assert value in [record.value for record in copied]
