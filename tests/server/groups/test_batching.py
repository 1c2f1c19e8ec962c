"""What arrives in one round of the event loop shares a batch, and nobody can tell: the same records, states and replies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.server.coordinator.partitioning import partition_for
from headrace.server.groups.classic import join as join_module
from headrace.wire.batch import parse_header
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.join_group import JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequestGroup
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.records import decode_records
from tests.server.groups.conftest import Harness

TOGETHER = [name for name in (f"group-{n}" for n in range(99)) if partition_for(name, 5) == 0][:4]
"""Groups of one coordinator partition."""
ELSEWHERE = next(name for name in (f"group-{n}" for n in range(99)) if partition_for(name, 5) == 1)

Step = tuple[str, dict[str, Any]]
GROUPS = st.sampled_from([*TOGETHER, ELSEWHERE])
INSTANCES = st.sampled_from(["i0", "i1"])
MEMBERS = st.sampled_from(["", "i0-0", "i0-1", "i1-0", "i1-1", "client-0", "client-1"])
GENERATIONS = st.integers(-1, 3)
STEPS = st.one_of(
    st.tuples(
        st.just("commit"),
        st.fixed_dictionaries(
            {
                "group": GROUPS,
                "member": MEMBERS,
                "generation": GENERATIONS,
                "offset": st.integers(0, 99),
                "topic": st.sampled_from(["orders", "payments"]),
                "partition": st.integers(0, 1),
                "metadata": st.sampled_from(["", "x" * 5000]),
                "retention_ms": st.sampled_from([-1, 1000]),
            }
        ),
    ),
    st.tuples(
        st.just("simple_commit"), st.fixed_dictionaries({"group": GROUPS, "offset": st.integers(0, 99)})
    ),
    st.tuples(st.just("fetch"), st.fixed_dictionaries({"group": GROUPS, "stable": st.booleans()})),
    st.tuples(st.just("join"), st.fixed_dictionaries({"group": GROUPS, "instance": INSTANCES})),
    st.tuples(st.just("join_dynamic"), st.fixed_dictionaries({"group": GROUPS, "member": MEMBERS})),
    st.tuples(
        st.just("sync"),
        st.fixed_dictionaries({"group": GROUPS, "member": MEMBERS, "generation": GENERATIONS}),
    ),
    st.tuples(
        st.just("heartbeat"),
        st.fixed_dictionaries({"group": GROUPS, "member": MEMBERS, "generation": GENERATIONS}),
    ),
    st.tuples(st.just("leave"), st.fixed_dictionaries({"group": GROUPS, "member": MEMBERS})),
    st.tuples(
        st.just("consumer"),
        st.fixed_dictionaries(
            {"group": GROUPS, "member": st.sampled_from(["a", "b"]), "epoch": st.integers(-1, 3)}
        ),
    ),
    st.tuples(st.just("delete"), st.fixed_dictionaries({"group": GROUPS})),
    st.tuples(st.just("delete_offsets"), st.fixed_dictionaries({"group": GROUPS})),
    st.tuples(
        st.just("commit_transactional"),
        st.fixed_dictionaries({"group": GROUPS, "producer": st.integers(1, 2), "offset": st.integers(0, 99)}),
    ),
    st.tuples(
        st.just("end_transaction"),
        st.fixed_dictionaries(
            {"partition": st.integers(0, 1), "producer": st.integers(1, 2), "committed": st.booleans()}
        ),
    ),
    st.tuples(st.just("topics_deleted"), st.just({})),
    st.tuples(st.just("list"), st.just({})),
    st.tuples(st.just("wait"), st.fixed_dictionaries({"seconds": st.sampled_from([1, 20])})),
)


class Driver:
    """Takes the steps of one run, each at once and not in a task that begins later, and notes every reply."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.replies: list[Any] = []

    def take(self, name: str, arguments: dict[str, Any]) -> None:
        index = len(self.replies)
        self.replies.append("no reply")
        try:
            result = getattr(self, name)(**arguments)
        except KafkaError as error:
            self.replies[index] = error.code
            return
        if isinstance(result, Awaitable):
            task = asyncio.ensure_future(result)
            task.add_done_callback(lambda done: self._replied(index, done))
        else:
            self.replies[index] = repr(result)

    def _replied(self, index: int, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, KafkaError):
            self.replies[index] = error.code
        else:
            self.replies[index] = repr(done.result())

    def commit(self, retention_ms: int, **arguments: Any) -> asyncio.Future[int]:
        version = 9 if retention_ms == -1 else 4
        return self.harness.commit(**arguments, version=version, retention_ms=retention_ms)

    def simple_commit(self, group: str, offset: int) -> asyncio.Future[int]:
        return self.harness.commit(offset, group=group)

    def fetch(self, group: str, stable: bool) -> Awaitable[Any]:
        request = OffsetFetchRequestGroup(group, topics=None)
        return self.harness.coordinator.fetch_offsets(request, stable)

    def join(self, group: str, instance: str) -> Awaitable[Any]:
        return self.harness.join(group, instance=instance, session_ms=10_000)

    def join_dynamic(self, group: str, member: str) -> Awaitable[Any]:
        return self.harness.join(group, member, version=3)

    def sync(self, group: str, member: str, generation: int) -> Awaitable[Any]:
        joined = JoinGroupResponse(generation_id=generation, member_id=member, protocol_name="range")
        return self.harness.sync(joined, {member: b"all"}, group=group)

    def heartbeat(self, group: str, member: str, generation: int) -> int:
        return self.harness.heartbeat(member, generation, group=group)

    def leave(self, group: str, member: str) -> Awaitable[Any]:
        request = LeaveGroupRequest(group, "", [MemberIdentity(member)])
        return self.harness.coordinator.leave(self.harness.client(5), request)

    def consumer(self, group: str, member: str, epoch: int) -> Awaitable[Any]:
        return self.harness.consumer(member, epoch, group=group)

    def delete(self, group: str) -> Awaitable[Any]:
        return self.harness.coordinator.delete(group)

    def delete_offsets(self, group: str) -> Awaitable[Any]:
        partitions = [OffsetDeleteRequestPartition(0)]
        return self.harness.coordinator.delete_offsets(
            OffsetDeleteRequest(group, [OffsetDeleteRequestTopic("orders", partitions)])
        )

    def commit_transactional(self, group: str, producer: int, offset: int) -> Awaitable[Any]:
        topic = TxnOffsetCommitRequestTopic("orders", [TxnOffsetCommitRequestPartition(0, offset)])
        request = TxnOffsetCommitRequest("tx", group, producer, 0, -1, "", None, [topic])
        return self.harness.coordinator.commit_transactional(self.harness.client(5), request)

    def end_transaction(self, partition: int, producer: int, committed: bool) -> Awaitable[Any]:
        return self.harness.coordinator.end_transaction(partition, producer, 0, 0, committed)

    def topics_deleted(self) -> None:
        self.harness.coordinator.topics_deleted(["payments"])

    def list(self) -> list[Any]:
        return self.harness.coordinator.list((), ())

    def wait(self, seconds: int) -> None:
        self.harness.clock.advance(seconds)


async def run(steps: list[Step], ends: set[int]) -> tuple[list[Any], list[Any], list[Any]]:
    """Replies, records and states. `ends` are the steps after which a round ends."""
    harness = Harness()
    await harness.start()
    driver = Driver(harness)
    for number, (name, arguments) in enumerate(steps):
        if name == "wait":
            await harness.settle()  # Time passes between rounds, not in one.
        driver.take(name, arguments)
        if number in ends:
            await harness.settle()
    await harness.settle()
    records = [_records(log.batches) for log in harness.logs.values()]
    states = [_state(harness, group) for group in (*TOGETHER, ELSEWHERE)]
    replies = list(driver.replies)
    harness.coordinator.close()
    await harness.settle()
    return replies, records, states


def _records(batches: list[bytes]) -> list[Any]:
    found = []
    for batch in batches:
        header = parse_header(batch)
        found += [
            (header.producer_id, header.is_control, each.offset, each.key, each.value)
            for each in decode_records(batch)
        ]
    return found


def _state(harness: Harness, group: str) -> Any:
    coordinator = harness.coordinator
    state = coordinator._shard(group).state
    described: Any = repr(coordinator.describe(group, 5))
    return (
        described,
        {topic: dict(partitions) for topic, partitions in state.offsets.of_group(group).items()},
        list(state.offsets.all_partitions(group)),
        sorted(map(str, state.timers._deadlines)),
    )


@given(steps=st.lists(STEPS, max_size=40), data=st.data())
@settings(max_examples=150, deadline=None)
def test_batched_and_one_by_one_give_the_same_replies_records_and_states(steps, data) -> None:
    ends = data.draw(st.sets(st.integers(0, max(len(steps) - 1, 0))))
    with pytest.MonkeyPatch.context() as patch:

        def play(ends: set[int]) -> tuple[list[Any], list[Any], list[Any]]:
            numbers = itertools.cycle([0, 1])
            patch.setattr(join_module.uuid, "uuid4", lambda: next(numbers))
            return asyncio.run(run(steps, ends))

        one_by_one = play(set(range(len(steps))))
        assert play(ends) == one_by_one
        assert play(set()) == one_by_one


async def _in_one_round(harness: Harness, *starts: Callable[[], Awaitable[Any]]) -> list[Any]:
    return await asyncio.gather(*(start() for start in starts), return_exceptions=True)


async def test_operations_of_different_groups_share_one_batch(groups) -> None:
    log = groups.log(TOGETHER[0])
    first, second, third, _ = TOGETHER
    await _in_one_round(
        groups,
        lambda: groups.commit(1, group=first),
        lambda: groups.consumer("a", group=second),
        lambda: groups.consumer("a", group=third),
        lambda: groups.commit(2, group=first, partition=1),
    )
    assert len(log.batches) == 1
    assert await groups.fetch(first, partition=1) == (2, 0)
    assert {each.group_id for each in groups.coordinator.list((), ())} == {first, second, third}


async def test_a_second_operation_on_a_group_sees_the_first(groups) -> None:
    group = TOGETHER[0]
    joined, again = await _in_one_round(
        groups, lambda: groups.consumer("a", group=group), lambda: groups.consumer("b", group=group)
    )
    assert (joined.member_epoch, again.member_epoch) == (1, 2)
    assert len(groups.log(group).batches) == 2


async def test_offsets_of_a_transaction_are_a_batch_of_their_own(groups) -> None:
    group = TOGETHER[0]
    driver = Driver(groups)
    await _in_one_round(
        groups,
        lambda: groups.commit(1, group=group),
        lambda: driver.commit_transactional(group, 7, 2),
        lambda: groups.commit(3, group=group),
    )
    headers = [parse_header(batch) for batch in groups.log(group).batches]
    assert [header.producer_id for header in headers] == [-1, 7, -1]


async def test_a_failed_append_fails_every_operation_of_the_batch_and_changes_nothing(groups) -> None:
    log = groups.log(TOGETHER[0])
    log.refuse = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "no")
    answers = await _in_one_round(
        groups,
        lambda: groups.commit(1, group=TOGETHER[0]),
        lambda: groups.consumer("a", group=TOGETHER[1]),
    )
    assert [each.code for each in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    log.refuse = None
    assert await groups.fetch(TOGETHER[0]) == (-1, 0)
    assert (await groups.consumer("a", group=TOGETHER[1])).member_epoch == 1


async def test_a_batch_is_split_between_operations_where_the_topic_takes_only_small_ones(groups) -> None:
    log = groups.log(TOGETHER[0])
    log.largest_batch = 300
    commits = [groups.commit(n, group=TOGETHER[n % 4], partition=n % 4, metadata="x" * 60) for n in range(20)]
    assert set(await asyncio.gather(*commits)) == {ErrorCode.NONE}
    assert 1 < len(log.batches) < 20
    assert max(map(len, log.batches)) <= 300


async def test_what_is_in_an_open_batch_is_answered_when_leadership_goes(groups) -> None:
    answers = [
        asyncio.ensure_future(groups.commit(1, group=TOGETHER[0])),
        asyncio.ensure_future(groups.consumer("a", group=TOGETHER[1])),
    ]
    groups.coordinator.resign(0)
    refused = await asyncio.gather(*answers, return_exceptions=True)
    assert [each.code for each in refused] == [ErrorCode.NOT_COORDINATOR] * 2
    await groups.settle()
    assert groups.log(TOGETHER[0]).batches == []
