"""The classic protocol, one request at a time, on a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from headrace.wire.codec import encode
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol


def subscription(*topics: str) -> bytes:
    return b"\0\1" + encode(ConsumerProtocolSubscription(topics=list(topics)), 1)


async def test_a_new_member_is_given_an_id_and_joins_with_it(groups) -> None:
    first = await groups.join()
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("client-")
    joining = groups.join(member=first.member_id)
    await groups.pass_time(0)
    joined = await joining
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, first.member_id)
    assert [member.member_id for member in joined.members] == [first.member_id]


async def test_old_clients_join_in_one_request(groups) -> None:
    joining = groups.join(version=3)
    await groups.pass_time(0)
    assert (await joining).generation_id == 1


async def test_only_the_leader_sees_the_members_and_everybody_gets_what_it_assigned(groups) -> None:
    joined = await groups.stable_group(3)
    assert len(joined[0].members) == 3
    assert [len(each.members) for each in joined[1:]] == [0, 0]
    assert {each.generation_id for each in joined} == {1}
    assert groups.coordinator.describe("group", 5).group_state == "Stable"


async def test_the_first_rebalance_waits_for_others_as_long_as_they_keep_coming(groups) -> None:
    groups.configure(initial_rebalance_delay_ms=3000)
    await groups.restart()
    one = groups.join(version=3, rebalance_ms=60_000)
    await groups.pass_time(2)
    two = groups.join(version=3, rebalance_ms=60_000)
    await groups.pass_time(2)
    assert not one.done()
    await groups.pass_time(2)
    assert (await one).generation_id == (await two).generation_id == 1


async def test_the_first_rebalance_waits_no_longer_than_the_rebalance_timeout(groups) -> None:
    groups.configure(initial_rebalance_delay_ms=3000)
    await groups.restart()
    joins = [groups.join(version=3, rebalance_ms=5000)]
    for _ in range(3):
        await groups.pass_time(2)
        joins.append(groups.join(version=3, rebalance_ms=5000))
    await groups.pass_time(0)
    assert joins[0].done()


async def test_the_members_vote_for_a_protocol_that_all_of_them_offer(groups) -> None:
    ids = [
        await groups.member_id(protocols={"a": b"", "b": b"", "c": b""}, protocol_type="x") for _ in range(3)
    ]
    offers = [{"c": b"3", "a": b"1"}, {"a": b"1", "c": b"3"}, {"c": b"3", "b": b"2", "a": b"1"}]
    joins = [
        groups.join(member=member, protocols=offer, protocol_type="x")
        for member, offer in zip(ids, offers, strict=True)
    ]
    await groups.pass_time(0)
    answers = await asyncio.gather(*joins)
    assert {answer.protocol_name for answer in answers} == {"c"}
    assert {member.metadata for answer in answers for member in answer.members} == {b"3"}


async def test_a_member_that_shares_no_protocol_with_the_group_is_refused(groups) -> None:
    await groups.stable_group(1)
    refused = await groups.join(protocols={"other": b""})
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = await groups.join(protocol_type="connect")
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_a_protocol_that_is_named_twice_counts_once(groups) -> None:
    twice = [JoinGroupRequestProtocol("range", subscription("orders"))] * 2
    request = JoinGroupRequest("group", 10_000, 30_000, "", None, "consumer", twice)
    joining = groups.coordinator.join(groups.client(3), request)
    await groups.pass_time(0)
    assert (await joining).protocol_name == "range"


async def test_a_join_makes_the_others_join_again_and_raises_the_generation(groups) -> None:
    (leader,) = await groups.stable_group(1)
    newcomer = groups.join(member=await groups.member_id())
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = groups.join(member=leader.member_id)
    assert (await again).generation_id == (await newcomer).generation_id == 2
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat(leader.member_id, 2) == ErrorCode.NONE


async def test_a_member_that_does_not_join_again_in_time_is_out(groups) -> None:
    leader, other = await groups.stable_group(2)
    newcomer = groups.join(member=await groups.member_id(), rebalance_ms=30_000)
    again = groups.join(member=leader.member_id)
    for _ in range(6):
        await groups.pass_time(5)
        groups.heartbeat(other.member_id, 1)
    assert (await newcomer).generation_id == (await again).generation_id == 2
    assert groups.heartbeat(other.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_silent_member_loses_its_session_and_the_rest_rebalance(groups) -> None:
    leader, other = await groups.stable_group(2)
    for _ in range(3):
        await groups.pass_time(4)
        groups.heartbeat(leader.member_id, 1)
    assert groups.heartbeat(other.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert (await groups.join(member=leader.member_id)).generation_id == 2


async def test_heartbeats_and_commits_keep_a_session_alive(groups) -> None:
    (leader,) = await groups.stable_group(1)
    for step in range(10):
        await groups.pass_time(9)
        if step % 2:
            assert groups.heartbeat(leader.member_id, 1) == ErrorCode.NONE
        else:
            await groups.commit(step, member=leader.member_id, generation=1)
    assert groups.coordinator.describe("group", 5).group_state == "Stable"


async def test_an_id_that_is_never_used_is_forgotten(groups) -> None:
    member = await groups.member_id(session_ms=10_000)
    await groups.pass_time(11)
    assert (await groups.join(member=member)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_pending_id_holds_up_the_rebalance_until_it_joins_or_expires(groups) -> None:
    (leader,) = await groups.stable_group(1)
    pending = await groups.member_id()
    again = groups.join(member=leader.member_id)
    assert not again.done()
    await groups.pass_time(11)
    assert (await again).generation_id == 2
    assert (await groups.join(member=pending)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_leaving_starts_a_rebalance_at_once_and_the_last_to_leave_empties_the_group(groups) -> None:
    leader, other = await groups.stable_group(2)
    left = await groups.leave(other.member_id)
    assert [member.error_code for member in left.members] == [0]
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = await groups.join(member=leader.member_id)
    assert again.generation_id == 2
    await groups.leave(leader.member_id)
    assert groups.coordinator.describe("group", 5).group_state == "Empty"


async def test_leaving_in_a_batch_answers_for_each_member(groups) -> None:
    leader, _ = await groups.stable_group(2)
    left = await groups.leave(leader.member_id, "stranger")
    assert [member.error_code for member in left.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID]


async def test_members_that_joined_but_never_sync_are_out_after_the_rebalance_timeout(groups) -> None:
    ids = [await groups.member_id() for _ in range(2)]
    joins = [groups.join(member=member) for member in ids]
    await groups.pass_time(0)
    joined = await asyncio.gather(*joins)
    leader = next(each for each in joined if each.member_id == each.leader)
    other = next(each for each in joined if each.member_id != each.leader)
    await groups.sync(leader, {})
    for _ in range(6):
        await groups.pass_time(5)
        groups.heartbeat(leader.member_id, 1)
        groups.heartbeat(other.member_id, 1)
    assert groups.heartbeat(other.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_that_waits_for_its_assignment_is_sent_back_when_another_joins(groups) -> None:
    ids = [await groups.member_id() for _ in range(2)]
    joins = [groups.join(member=member) for member in ids]
    await groups.pass_time(0)
    joined = await asyncio.gather(*joins)
    follower = next(each for each in joined if each.member_id != each.leader)
    waiting = groups.sync(follower)
    newcomer = await groups.member_id()
    rejoining = groups.join(member=newcomer)
    assert (await waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not rejoining.done()


async def test_asking_twice_gives_the_same_answer(groups) -> None:
    _, follower = await groups.stable_group(2)
    again = await groups.join(member=follower.member_id)
    assert again.generation_id == 1
    assert (await groups.sync(again)).assignment == follower.member_id.encode()


async def test_a_leader_that_joins_again_forces_a_rebalance(groups) -> None:
    leader, follower = await groups.stable_group(2)
    again = groups.join(member=leader.member_id)
    assert groups.heartbeat(follower.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    groups.join(member=follower.member_id)
    assert (await again).generation_id == 2


async def test_a_stale_generation_cannot_sync(groups) -> None:
    leader, _ = await groups.stable_group(2)
    leader.generation_id = 0
    assert (await groups.sync(leader)).error_code == ErrorCode.ILLEGAL_GENERATION


async def test_a_full_group_refuses_newcomers(groups) -> None:
    groups.configure(max_size=2)
    await groups.restart()
    joined = await groups.stable_group(2)
    assert (await groups.join()).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.heartbeat(joined[0].member_id, 1) == ErrorCode.NONE


async def test_a_session_timeout_outside_the_brokers_limits_is_refused_with_both_limits(groups) -> None:
    with pytest.raises(KafkaError, match=r"100 is not between .* 6000 and .* 1800000") as refused:
        groups.join(session_ms=100)
    assert refused.value.code == ErrorCode.INVALID_SESSION_TIMEOUT


async def test_requests_without_a_group_id_are_refused(groups) -> None:
    with pytest.raises(KafkaError) as refused:
        groups.join(group="")
    assert refused.value.code == ErrorCode.INVALID_GROUP_ID


# Static members


async def static_group(groups, *instances: str, **options):
    joins = {i: groups.join(instance=i, rebalance_ms=20_000, **options) for i in instances}
    await groups.pass_time(0)
    joined = {instance: await join for instance, join in joins.items()}
    leader = next(instance for instance, each in joined.items() if each.member_id == each.leader)
    syncs = {leader: groups.sync(joined[leader], {each.member_id: i.encode() for i, each in joined.items()})}
    for instance in instances:
        if instance != leader:
            syncs[instance] = groups.sync(joined[instance], instance=instance)
    for instance, answer in syncs.items():
        assert (await answer).assignment == instance.encode()
    return joined, leader


async def test_a_static_member_that_restarts_gets_its_assignment_back_without_a_rebalance(groups) -> None:
    joined, leader = await static_group(groups, "a", "b")
    follower = next(instance for instance in joined if instance != leader)
    back = await groups.join(instance=follower)
    assert back.member_id != joined[follower].member_id
    assert back.generation_id == 1
    assert (await groups.sync(back, instance=follower)).assignment == follower.encode()
    assert groups.heartbeat(joined[leader].member_id, 1, instance=leader) == ErrorCode.NONE


async def test_a_static_leader_that_restarts_is_told_not_to_assign(groups) -> None:
    _, leader = await static_group(groups, "a", "b")
    back = await groups.join(instance=leader)
    assert back.skip_assignment
    assert back.leader == back.member_id
    assert len(back.members) == 2


async def test_an_old_client_that_restarts_as_static_leader_does_not_learn_that_it_leads(groups) -> None:
    joined, leader = await static_group(groups, "a", "b")
    back = await groups.join(instance=leader, version=8)
    assert back.leader == joined[leader].member_id
    assert back.members == []


async def test_two_with_one_instance_id_the_older_is_fenced(groups) -> None:
    joined, leader = await static_group(groups, "a")
    old = joined[leader]
    await groups.join(instance="a")
    assert groups.heartbeat(old.member_id, 1, instance="a") == ErrorCode.FENCED_INSTANCE_ID
    fenced = await groups.join(member=old.member_id, instance="a")
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID


async def test_a_parked_join_of_the_same_instance_is_fenced_by_the_newer_one(groups) -> None:
    groups.configure(initial_rebalance_delay_ms=3000)
    await groups.restart()
    older = groups.join(instance="a")
    newer = groups.join(instance="a")
    assert (await older).error_code == ErrorCode.FENCED_INSTANCE_ID
    await groups.pass_time(3)
    assert (await newer).error_code == 0


async def test_an_administrator_removes_a_static_member_by_its_instance_id(groups) -> None:
    joined, _ = await static_group(groups, "a", "b")
    removed = await groups.leave(instances=("a", "nobody"))
    assert [member.error_code for member in removed.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert groups.heartbeat(joined["a"].member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_static_members_that_are_away_keep_their_place_while_their_session_lasts(groups) -> None:
    joined, leader = await static_group(groups, "a", "b")
    newcomer = groups.join(member=await groups.member_id(), rebalance_ms=20_000)
    groups.heartbeat(joined[leader].member_id, 1, instance=leader)
    await groups.pass_time(5)
    assert not newcomer.done()
    rejoined = [groups.join(member=each.member_id, instance=instance) for instance, each in joined.items()]
    assert {(await each).generation_id for each in [newcomer, *rejoined]} == {2}


async def test_a_static_member_with_other_protocols_makes_the_group_choose_again(groups) -> None:
    both = {"range": subscription("orders"), "sticky": subscription("orders")}
    joined, leader = await static_group(groups, "a", "b", protocols=both)
    follower = next(instance for instance in joined if instance != leader)
    back = groups.join(instance=follower, protocols={"sticky": subscription("orders")})
    assert groups.heartbeat(joined[leader].member_id, 1, instance=leader) == ErrorCode.REBALANCE_IN_PROGRESS
    groups.join(member=joined[leader].member_id, instance=leader, protocols=both)
    assert ((await back).generation_id, (await back).protocol_name) == (2, "sticky")
