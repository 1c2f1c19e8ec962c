"""The consumer protocol (KIP-848), one heartbeat at a time, on a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.server.groups.refusals import refused

ALL = [0, 1, 2, 3]


async def test_the_first_member_gets_everything_with_its_first_heartbeat(groups) -> None:
    joined = await groups.consumer("a")
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("a", 1, 5000)
    assert groups.partitions(joined) == {"orders": ALL}
    quiet = await groups.consumer("a", 1)
    assert (quiet.member_epoch, groups.partitions(quiet)) == (1, None)


async def test_an_old_client_may_leave_its_id_to_the_broker(groups) -> None:
    joined = await groups.consumer("", version=0)
    assert len(joined.member_id) == 36
    assert (await groups.consumer(joined.member_id, 1, version=0)).member_epoch == 1


async def test_a_partition_moves_only_after_its_owner_has_given_it_up(groups) -> None:
    await groups.consumer("a")
    b = await groups.consumer("b")
    assert (b.member_epoch, groups.partitions(b)) == (2, {})
    # a learns what to keep, and stays in its epoch until it has given up the rest.
    a = await groups.consumer("a", 1)
    assert a.member_epoch == 1
    kept = groups.partitions(a)
    assert kept is not None
    assert len(kept["orders"]) == 2
    assert groups.partitions(await groups.consumer("b", 2)) is None
    a = await groups.consumer("a", 1, owned={"orders": ALL})
    assert a.member_epoch == 1, "it still reports what it must give up"
    a = await groups.consumer("a", 1, owned=kept)
    assert a.member_epoch == 2
    b = await groups.consumer("b", 2)
    assert groups.partitions(b) == {"orders": sorted(set(ALL) - set(kept["orders"]))}
    assert groups.coordinator.describe_consumer("group").group_state == "Stable"


async def test_the_group_says_where_it_stands(groups) -> None:
    def state() -> str:
        return groups.coordinator.describe_consumer("group").group_state

    await groups.consumer("a")
    assert state() == "Stable"
    await groups.consumer("b")
    assert state() == "Reconciling"
    await groups.consumer("a", -1)
    assert state() == "Assigning"
    await groups.consumer("b", 2)
    assert state() == "Stable"
    await groups.consumer("b", -1)
    assert state() == "Empty"


async def test_a_member_that_leaves_makes_room_at_once(groups) -> None:
    await groups.consumer("a")
    await groups.consumer("b")
    left = await groups.consumer("a", -1)
    assert left.member_epoch == -1
    b = await groups.consumer("b", 2)
    assert groups.partitions(b) == {"orders": ALL}


async def test_a_silent_member_is_out_after_its_session(groups) -> None:
    await groups.consumer("a")
    await groups.consumer("b")
    await groups.pass_time(40)
    await groups.consumer("b", 2)
    await groups.pass_time(10)
    assert (await refused(groups.consumer("a", 1)))[0] == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.partitions(await groups.consumer("b", 2)) == {"orders": ALL}


async def test_a_silent_member_is_out_as_soon_as_that_can_be_stored(groups) -> None:
    await groups.consumer("a")
    log = groups.log("group")
    log.refuse = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "no")
    await groups.pass_time(46)
    assert [each.member_id for each in groups.coordinator.describe_consumer("group").members] == ["a"]
    log.refuse = None
    await groups.pass_time(1)
    assert groups.coordinator.describe_consumer("group").members == []


async def test_a_group_may_have_a_session_timeout_and_heartbeat_interval_of_its_own(groups) -> None:
    groups.topics.settings["group"] = {
        "consumer.session.timeout.ms": "50000",
        "consumer.heartbeat.interval.ms": "7000",
    }
    assert (await groups.consumer("a")).heartbeat_interval_ms == 7000
    await groups.pass_time(49)
    assert (await groups.consumer("a", 1)).member_epoch == 1
    await groups.pass_time(51)
    assert (await refused(groups.consumer("a", 1)))[0] == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_that_never_gives_up_its_partitions_is_out_after_the_rebalance_timeout(groups) -> None:
    await groups.consumer("a", rebalance_ms=20_000)
    await groups.consumer("b")
    await groups.consumer("a", 1)
    for _ in range(3):
        await groups.pass_time(5)
        await groups.consumer("a", 1, owned={"orders": ALL})
        await groups.consumer("b", 2)
    await groups.pass_time(5)
    assert (await refused(groups.consumer("a", 1)))[0] == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.partitions(await groups.consumer("b", 2)) == {"orders": ALL}


async def test_a_wrong_epoch_is_fenced(groups) -> None:
    await groups.consumer("a")
    await groups.consumer("b")
    await groups.consumer("a", 1, owned={"orders": ALL})
    assert (await refused(groups.consumer("b", 7)))[0] == ErrorCode.FENCED_MEMBER_EPOCH
    assert (await refused(groups.consumer("b", 1)))[0] == ErrorCode.FENCED_MEMBER_EPOCH
    assert (await refused(groups.consumer("stranger", 1)))[0] == ErrorCode.UNKNOWN_MEMBER_ID
    assert (await refused(groups.consumer("a", 1, group="nobody")))[0] == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_fenced_member_joins_again_at_once_under_its_id(groups) -> None:
    await groups.consumer("a")
    await groups.consumer("a", 1, topics=["orders", "payments"])
    await groups.consumer("a", 2, topics=["payments"])
    assert (await refused(groups.consumer("a", 7)))[0] == ErrorCode.FENCED_MEMBER_EPOCH
    again = await groups.consumer("a", topics=["payments"])
    assert groups.partitions(again) == {"payments": [0, 1]}
    assert (await groups.consumer("a", again.member_epoch)).member_epoch == again.member_epoch


async def test_a_member_whose_answer_was_lost_is_known_by_its_previous_epoch(groups) -> None:
    await groups.consumer("a")
    await groups.consumer("b")
    kept = groups.partitions(await groups.consumer("a", 1))
    assert kept is not None
    await groups.consumer("a", 1, owned=kept)
    again = await groups.consumer("a", 1, owned=kept)
    assert again.member_epoch == 2
    assert (await refused(groups.consumer("a", 1, owned={"orders": ALL})))[0] == ErrorCode.FENCED_MEMBER_EPOCH


async def test_a_heartbeat_that_says_everything_is_told_everything(groups) -> None:
    await groups.consumer("a")
    full = await groups.consumer("a", 1, topics=["orders"], owned={"orders": ALL}, rebalance_ms=30_000)
    assert groups.partitions(full) == {"orders": ALL}


async def test_a_changed_subscription_changes_the_assignment(groups) -> None:
    await groups.consumer("a")
    changed = await groups.consumer("a", 1, topics=["orders", "payments"])
    assert changed.member_epoch == 2
    assert groups.partitions(changed) == {"orders": ALL, "payments": [0, 1]}


async def test_new_partitions_are_assigned_with_the_next_heartbeat(groups) -> None:
    await groups.consumer("a")
    groups.topics.set("orders", 6)
    grown = await groups.consumer("a", 1)
    assert (grown.member_epoch, groups.partitions(grown)) == (2, {"orders": [0, 1, 2, 3, 4, 5]})


async def test_partitions_added_while_a_heartbeat_waits_for_the_replicas_are_assigned_by_the_next(
    groups,
) -> None:
    await groups.consumer("a")
    log = groups.log("group")
    log.hold = True
    groups.commit(1, member="a", generation=1)
    quiet = groups.consumer("a", 1)
    await asyncio.sleep(0)
    groups.topics.set("orders", 6)
    log.hold = False
    log.commit()
    await quiet
    grown = await groups.consumer("a", 1)
    assert (grown.member_epoch, groups.partitions(grown)) == (2, {"orders": [0, 1, 2, 3, 4, 5]})


async def test_a_topic_that_is_created_later_is_assigned_when_it_is_there(groups) -> None:
    joined = await groups.consumer("a", topics=["later"])
    assert groups.partitions(joined) == {}
    groups.topics.set("later", 2)
    assert groups.partitions(await groups.consumer("a", 1)) == {"later": [0, 1]}


async def test_changes_of_topics_that_do_not_concern_a_group_leave_it_alone(groups) -> None:
    await groups.consumer("a")
    before = len(groups.log("group").batches)
    groups.topics.set("unrelated", 9)
    assert (await groups.consumer("a", 1)).member_epoch == 1
    assert len(groups.log("group").batches) == before


async def test_a_quiet_heartbeat_writes_nothing(groups) -> None:
    await groups.consumer("a")
    before = len(groups.log("group").batches)
    for _ in range(5):
        await groups.consumer("a", 1)
    assert len(groups.log("group").batches) == before


async def test_a_deleted_topic_is_given_up(groups) -> None:
    await groups.consumer("a", topics=["orders", "payments"])
    groups.topics.remove("orders")
    shrunk = await groups.consumer("a", 1)
    assert groups.partitions(shrunk) == {"payments": [0, 1]}


async def test_more_members_than_partitions_leave_some_without(groups) -> None:
    for name in "abc":
        await groups.consumer(name, topics=["payments"])
    epochs = {"a": 1, "b": 2, "c": 3}
    held: dict[str, dict[str, list[int]]] = {"a": {"payments": [0, 1]}, "b": {}, "c": {}}
    for _ in range(4):
        for name, epoch in epochs.items():
            answer = await groups.consumer(name, epoch, owned=held[name])
            epochs[name] = answer.member_epoch
            held[name] = held[name] if groups.partitions(answer) is None else groups.partitions(answer)
    assert sorted(len(each.get("payments", [])) for each in held.values()) == [0, 1, 1]


async def test_the_members_choose_the_assignor_and_an_unknown_one_is_refused_by_name(groups) -> None:
    await groups.consumer("a", assignor="range")
    assert groups.coordinator.describe_consumer("group").assignor_name == "range"
    code, message = await refused(groups.consumer("b", assignor="magic"))
    assert code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert message == "ServerAssignor magic is not supported. Supported assignors: uniform, range."


async def test_a_full_group_refuses_newcomers(groups) -> None:
    groups.configure(consumer_max_size=1)
    await groups.restart()
    await groups.consumer("a")
    assert (await refused(groups.consumer("b")))[0] == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert (await groups.consumer("a", 1)).member_epoch == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"group": ""}, "GroupId can't be empty."),
        ({"instance": ""}, "InstanceId and RackId can't be empty; leave them out instead."),
        ({"epoch": -3}, "MemberEpoch -3 is invalid."),
        ({"member": ""}, "MemberId can't be empty."),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"rebalance_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": {"orders": [0]}}, "TopicPartitions must be empty when (re-)joining."),
    ],
)
async def test_a_heartbeat_that_makes_no_sense_is_refused_with_the_reason(groups, options, complaint) -> None:
    asked = {"member": "a", "epoch": 0, **options}
    code, message = await refused(groups.consumer(asked.pop("member"), asked.pop("epoch"), **asked))
    assert (code, message) == (ErrorCode.INVALID_REQUEST, complaint)


async def test_a_join_that_says_nothing_of_topics_is_refused(groups) -> None:
    request = ConsumerGroupHeartbeatRequest("group", "a", 0, rebalance_timeout_ms=1000, topic_partitions=[])
    code, message = await refused(groups.coordinator.consumer_heartbeat(groups.client(1), request))
    assert code == ErrorCode.INVALID_REQUEST
    assert (
        message == "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    )


async def test_a_member_may_join_before_it_has_a_topic(groups) -> None:
    joined = await groups.consumer("a", topics=[])
    assert (joined.error_code, joined.member_epoch, groups.partitions(joined)) == (0, 1, {})
    answer = await groups.consumer("a", 1, topics=["payments"])
    assert groups.partitions(answer) == {"payments": [0, 1]}


async def test_an_administrator_takes_members_out(groups) -> None:
    await groups.consumer("a")
    await groups.consumer("b", instance="one")
    left = await groups.leave("a", "stranger", instances=("one", "two"))
    assert [each.error_code for each in left.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.coordinator.describe_consumer("group").group_state == "Empty"
    assert (await refused(groups.consumer("a", 1)))[0] == ErrorCode.UNKNOWN_MEMBER_ID
