"""What a group of the consumer protocol stores: static members, offsets, and its state after a restart."""

from __future__ import annotations

import pytest

from headrace.wire.errors import ErrorCode, KafkaError
from tests.server.groups.refusals import refused

ALL = [0, 1, 2, 3]


async def test_a_static_member_that_comes_back_in_time_gets_its_partitions_and_nobody_notices(groups) -> None:
    await groups.consumer("a", instance="one")
    await groups.consumer("b", instance="two")
    kept = groups.partitions(await groups.consumer("a", 1, instance="one"))
    await groups.consumer("a", 1, instance="one", owned=kept)
    theirs = groups.partitions(await groups.consumer("b", 2, instance="two"))
    await groups.consumer("a", -2, instance="one")
    assert groups.partitions(await groups.consumer("b", 2, instance="two")) is None
    back = await groups.consumer("a2", instance="one")
    assert (back.member_epoch, groups.partitions(back)) == (2, kept)
    still = await groups.consumer("b", 2, instance="two")
    assert (still.member_epoch, groups.partitions(still)) == (2, None)
    assert theirs is not None


async def test_an_instance_id_in_use_is_refused_until_it_is_released(groups) -> None:
    await groups.consumer("a", instance="one")
    assert (await refused(groups.consumer("b", instance="one")))[0] == ErrorCode.UNRELEASED_INSTANCE_ID
    await groups.consumer("a", -2, instance="one")
    assert (await groups.consumer("b", instance="one")).member_epoch == 1
    assert (await refused(groups.consumer("a", 1, instance="one")))[0] == ErrorCode.FENCED_INSTANCE_ID


async def test_a_static_member_that_stays_away_loses_its_place_with_its_session(groups) -> None:
    await groups.consumer("a", instance="one")
    await groups.consumer("b")
    await groups.consumer("a", -2, instance="one")
    await groups.pass_time(30)
    await groups.consumer("b", 2)
    await groups.pass_time(16)
    assert groups.partitions(await groups.consumer("b", 2)) == {"orders": ALL}


async def test_a_group_survives_a_restart_in_the_middle_of_a_rebalance(groups) -> None:
    await groups.consumer("a")
    await groups.consumer("b")
    kept = groups.partitions(await groups.consumer("a", 1))
    await groups.restart()
    assert groups.coordinator.describe_consumer("group").group_state == "Reconciling"
    assert (await groups.consumer("a", 1, owned=kept)).member_epoch == 2
    theirs = groups.partitions(await groups.consumer("b", 2))
    assert kept is not None
    assert theirs == {"orders": sorted(set(ALL) - set(kept["orders"]))}


async def test_nothing_changes_when_a_heartbeat_cannot_be_stored(groups) -> None:
    await groups.consumer("a")
    log = groups.log("group")
    log.refuse = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "no")
    assert (await refused(groups.consumer("b")))[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.topics.set("orders", 5)
    assert (await refused(groups.consumer("a", 1)))[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    log.refuse = None
    assert [member.member_id for member in groups.coordinator.describe_consumer("group").members] == ["a"]
    assert groups.partitions(await groups.consumer("a", 1)) == {"orders": [0, 1, 2, 3, 4]}


async def test_offsets_are_committed_and_fetched_with_the_members_epoch(groups) -> None:
    await groups.consumer("a")
    await groups.commit(5, member="a", generation=1)
    assert await groups.fetch() == (5, 0)
    with pytest.raises(KafkaError) as stale:
        await groups.commit(6, member="a", generation=0)
    assert stale.value.code == ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(KafkaError) as old:
        await groups.commit(6, member="a", generation=1, version=8)
    assert old.value.code == ErrorCode.UNSUPPORTED_VERSION


async def test_an_empty_group_is_deleted_with_everything_it_wrote(groups) -> None:
    await groups.consumer("a", regex="orders")
    await groups.commit(5, member="a", generation=1)
    await groups.consumer("a", -1)
    await groups.coordinator.delete("group")
    await groups.restart()
    assert groups.coordinator.list([], []) == []


async def test_describing_shows_members_with_what_they_have_and_will_have(groups) -> None:
    await groups.consumer("a", topics=["payments"], instance="one")
    await groups.consumer("b", topics=["payments"])
    described = groups.coordinator.describe_consumer("group")
    a, b = described.members
    assert (described.group_epoch, described.assignment_epoch) == (2, 2)
    assert (a.member_id, a.instance_id, a.client_host, a.member_epoch) == ("a", "one", "/127.0.0.1", 1)
    assert [each.topic_name for each in a.assignment.topic_partitions] == ["payments"]
    assert a.assignment.topic_partitions[0].partitions == [0, 1]
    assert len(a.target_assignment.topic_partitions[0].partitions) == 1
    assert b.assignment.topic_partitions == []
    with pytest.raises(KafkaError) as unknown:
        groups.coordinator.describe_consumer("nobody")
    assert unknown.value.code == ErrorCode.GROUP_ID_NOT_FOUND
