"""Live groups that change protocol: classic members and new ones side by side, in both directions."""

from __future__ import annotations

import struct

import pytest

from headrace.wire.codec import decode, encode
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.wire.messages.consumer_protocol_subscription import TopicPartition as OwnedPartition


def assignment(**partitions: list[int]) -> bytes:
    body = ConsumerProtocolAssignment([TopicPartition(name, each) for name, each in partitions.items()])
    return struct.pack(">h", 1) + bytes(encode(body, 1))


def read_assignment(data: bytes) -> dict[str, list[int]]:
    message, _ = decode(ConsumerProtocolAssignment, 1, data, 2)
    return {each.topic: each.partitions for each in message.assigned_partitions}


def subscription(owned: list[int], *topics: str) -> bytes:
    held = [OwnedPartition("orders", owned)] if owned else []
    return struct.pack(">h", 1) + bytes(
        encode(ConsumerProtocolSubscription(list(topics or ("orders",)), owned_partitions=held), 1)
    )


async def classic_group(groups, count: int, *instances: str) -> list:
    """A stable classic group of consumers of `orders`, two or four partitions each."""
    if instances:
        joins = [groups.join(instance=instance) for instance in instances]
    else:
        joins = [groups.join(member=await groups.member_id()) for _ in range(count)]
    await groups.pass_time(0)
    joined = [await join for join in joins]
    each = 4 // len(joined)
    shares = {
        member.member_id: assignment(orders=list(range(each * n, each * n + each)))
        for n, member in enumerate(joined)
    }
    leader = next(member for member in joined if member.member_id == member.leader)
    await groups.sync(leader, shares)
    return joined


async def classic_step(
    groups, member, owned: list[int], instance: str | None = None
) -> tuple[int, list[int]]:
    """A classic member joins again with what it holds: (its new generation, its partitions)."""
    answer = await groups.join(
        member=member.member_id, instance=instance, protocols={"range": subscription(owned)}
    )
    assert answer.error_code == 0
    member.generation_id, member.protocol_name = answer.generation_id, answer.protocol_name
    synced = await groups.sync(member, instance=instance)
    assert synced.error_code == 0
    return answer.generation_id, read_assignment(synced.assignment).get("orders", [])


async def test_a_new_member_makes_a_classic_group_a_consumer_group_and_shares_its_partitions(groups) -> None:
    first, second = await classic_group(groups, 2)
    new = await groups.consumer("new")
    assert groups.partitions(new) == {}, "the others still have everything"
    described = groups.coordinator.describe_consumer("group")
    assert sorted(member.member_type for member in described.members) == [0, 0, 1]
    # The classic members hear of it in their heartbeats and rejoin, each for itself.
    assert groups.heartbeat(first.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    held = {}
    for member, owned in ((first, [0, 1]), (second, [2, 3])):
        _, held[member.member_id] = await classic_step(groups, member, owned)
        if set(owned) - set(held[member.member_id]):
            assert groups.heartbeat(member.member_id, member.generation_id) == ErrorCode.REBALANCE_IN_PROGRESS
            _, held[member.member_id] = await classic_step(groups, member, held[member.member_id])
        assert groups.heartbeat(member.member_id, member.generation_id) == ErrorCode.NONE
    mine = groups.partitions(await groups.consumer("new", new.member_epoch))
    assert mine is not None
    assert sorted([*mine["orders"], *held[first.member_id], *held[second.member_id]]) == [0, 1, 2, 3]
    assert groups.coordinator.describe_consumer("group").group_state == "Stable"


async def test_an_upgraded_group_survives_a_restart(groups) -> None:
    first, _ = await classic_group(groups, 2)
    new = await groups.consumer("new")
    await groups.restart()
    assert groups.heartbeat(first.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert (await groups.consumer("new", new.member_epoch)).member_epoch == new.member_epoch
    assert [each.group_type for each in groups.coordinator.list([], [])] == ["Consumer"]


async def test_members_that_wait_for_a_rebalance_are_told_to_join_again_when_the_group_is_upgraded(
    groups,
) -> None:
    first, _ = await classic_group(groups, 2)
    waiting = groups.join(member=first.member_id)
    await groups.consumer("new")
    assert (await waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS


async def test_classic_members_commit_with_their_generation_in_a_consumer_group(groups) -> None:
    first, _ = await classic_group(groups, 2)
    await groups.consumer("new")
    await groups.commit(5, member=first.member_id, generation=1, version=8)
    with pytest.raises(KafkaError) as stale:
        await groups.commit(5, member=first.member_id, generation=0, version=8)
    assert stale.value.code == ErrorCode.ILLEGAL_GENERATION


async def test_a_classic_member_joins_a_consumer_group(groups) -> None:
    await groups.consumer("new")
    asked = await groups.join()
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    generation, owned = await classic_step(groups, asked, [])
    assert (generation, owned) == (2, [])
    kept = groups.partitions(await groups.consumer("new", 1))
    assert kept is not None
    await groups.consumer("new", 1, owned=kept)
    assert groups.heartbeat(asked.member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert await classic_step(groups, asked, []) == (2, sorted({0, 1, 2, 3} - set(kept["orders"])))


async def test_when_the_last_new_member_leaves_the_group_is_classic_again_and_rebalances(groups) -> None:
    first, second = await classic_group(groups, 2)
    new = await groups.consumer("new")
    await groups.consumer("new", -1)
    assert groups.coordinator.describe("group", 5).group_state == "PreparingRebalance"
    assert groups.heartbeat(first.member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    joins = [groups.join(member=member.member_id) for member in (first, second)]
    joined = [await join for join in joins]
    assert {each.generation_id for each in joined} == {3}
    assert {each.leader for each in joined} <= {first.member_id, second.member_id}
    assert new.member_epoch == 2
    await groups.restart()
    assert [each.group_type for each in groups.coordinator.list([], [])] == ["Classic"]


async def test_new_members_that_an_administrator_takes_out_leave_a_classic_group(groups) -> None:
    first, second = await classic_group(groups, 2)
    await groups.consumer("new")
    await groups.consumer("newer")
    left = await groups.leave("new", "newer", second.member_id)
    assert [each.error_code for each in left.members] == [0, 0, 0]
    described = groups.coordinator.describe("group", 6)
    assert [each.member_id for each in described.members] == [first.member_id]


async def test_a_new_member_that_dies_takes_the_group_back_to_classic(groups) -> None:
    (first,) = await classic_group(groups, 1)
    await groups.consumer("new")
    _, kept = await classic_step(groups, first, [0, 1, 2, 3])
    await classic_step(groups, first, kept)
    for _ in range(6):
        await groups.pass_time(8)
        groups.heartbeat(first.member_id, first.generation_id)
    assert groups.coordinator.describe("group", 5).group_state == "PreparingRebalance"


async def test_a_static_member_changes_protocol_and_keeps_its_partitions(groups) -> None:
    one, two = await classic_group(groups, 2, "one", "two")
    upgraded = await groups.consumer("new-one", instance="one")
    assert groups.partitions(upgraded) == {"orders": [0, 1]}
    assert groups.heartbeat(one.member_id, 1, instance="one") == ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(two.member_id, 1, instance="two") == ErrorCode.REBALANCE_IN_PROGRESS
    assert (await classic_step(groups, two, [2, 3], "two"))[1] == [2, 3]


async def test_the_last_new_static_member_comes_back_classic_and_so_does_the_group(groups) -> None:
    _, two = await classic_group(groups, 2, "one", "two")
    await groups.consumer("new-one", instance="one")
    back = groups.join(instance="one")
    again = groups.join(member=two.member_id, instance="two")
    assert (await back).error_code == (await again).error_code == 0
    assert (await back).generation_id == (await again).generation_id
    assert [each.group_type for each in groups.coordinator.list([], [])] == ["Classic"]


async def test_a_classic_member_leaves_a_consumer_group(groups) -> None:
    first, second = await classic_group(groups, 2)
    new = await groups.consumer("new")
    left = await groups.leave(first.member_id, "stranger")
    assert [each.error_code for each in left.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    gained = groups.partitions(await groups.consumer("new", new.member_epoch))
    assert gained is not None
    assert set() < set(gained["orders"]) <= {0, 1}, "what the one that left had is free at once"
    assert groups.heartbeat(second.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS


async def test_a_classic_member_that_does_not_rejoin_in_time_is_out(groups) -> None:
    first, second = await classic_group(groups, 2)
    new = await groups.consumer("new")
    for _ in range(7):
        groups.heartbeat(first.member_id, 1)
        groups.heartbeat(second.member_id, 1)
        await groups.consumer("new", new.member_epoch)
        await groups.pass_time(5)
    assert groups.heartbeat(first.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_offsets_still_have_a_group_when_its_change_of_protocol_is_cut_short(groups) -> None:
    joined = await groups.consumer("new")
    await groups.commit(5, member="new", generation=joined.member_epoch)
    await groups.consumer("new", -1)
    await groups.member_id()  # the first half of a classic join, and the second never comes
    await groups.restart()
    assert [each.group_id for each in groups.coordinator.list([], [])] == ["group"]
    await groups.pass_time(8 * 24 * 3600)
    assert await groups.fetch() == (-1, 0)


async def test_an_empty_group_changes_protocol_without_ado(groups) -> None:
    (only,) = await classic_group(groups, 1)
    await groups.commit(5, member=only.member_id, generation=1)
    await groups.leave(only.member_id)
    assert groups.partitions(await groups.consumer("new")) == {"orders": [0, 1, 2, 3]}
    assert await groups.fetch() == (5, 0)
    await groups.consumer("new", -1)
    joining = groups.join(version=3)
    await groups.pass_time(0)
    assert (await joining).error_code == 0
    assert await groups.fetch() == (5, 0)
    await groups.restart()
    assert await groups.fetch() == (5, 0)


@pytest.mark.parametrize("settings", [{"upgrade": False}, {"consumer_max_size": 1}])
async def test_an_upgrade_that_is_not_allowed_leaves_the_group_as_it_is(groups, settings) -> None:
    groups.configure(**settings)
    await groups.restart()
    first, _ = await classic_group(groups, 2)
    with pytest.raises(KafkaError, match="cannot become a consumer group") as refused:
        await groups.consumer("new")
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.heartbeat(first.member_id, 1) == ErrorCode.NONE


async def test_a_group_whose_upgrade_could_not_be_stored_still_notices_who_is_silent(groups) -> None:
    first, _ = await classic_group(groups, 2)
    waiting = groups.join(member=first.member_id)
    log = groups.log("group")
    log.refuse = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "no")
    with pytest.raises(KafkaError):
        await groups.consumer("new")
    log.refuse = None
    assert not waiting.done(), "the rebalance under way goes on"
    await groups.pass_time(11)
    described = groups.coordinator.describe("group", 6)
    assert [each.member_id for each in described.members] == [first.member_id]
    assert (await waiting).generation_id == 2


async def test_groups_of_other_kinds_of_members_are_never_upgraded(groups) -> None:
    joining = groups.join(version=3, protocol_type="connect", protocols={"default": b"x"})
    await groups.pass_time(0)
    await joining
    with pytest.raises(KafkaError, match="its protocol type is connect"):
        await groups.consumer("new")


async def test_without_downgrades_classic_members_stay_in_the_consumer_group(groups) -> None:
    groups.configure(downgrade=False)
    await groups.restart()
    first, _ = await classic_group(groups, 2)
    await groups.consumer("new")
    await groups.consumer("new", -1)
    assert [each.group_type for each in groups.coordinator.list([], [])] == ["Consumer"]
    assert groups.heartbeat(first.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
