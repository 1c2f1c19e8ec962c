"""Committed offsets: who may commit, what is answered, what survives and what expires."""

from __future__ import annotations

import asyncio

import pytest

from headrace.server.groups.client import Client
from headrace.wire.errors import ErrorCode, KafkaError
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

DAY = 24 * 3600


async def test_a_consumer_without_a_group_membership_commits_and_reads_back(groups) -> None:
    assert await groups.commit(42, metadata="note") == 0
    assert await groups.fetch() == (42, 0)
    everything = await groups.coordinator.fetch_offsets(OffsetFetchRequestGroup("group", topics=None), False)
    partition = everything.topics[0].partitions[0]
    assert (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (
        42,
        3,
        "note",
    )


async def test_a_partition_without_a_commit_answers_minus_one(groups) -> None:
    assert await groups.fetch("nobody") == (-1, 0)


async def test_metadata_beyond_the_limit_is_refused_for_that_partition_alone(groups) -> None:
    assert await groups.commit(1, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await groups.fetch() == (-1, 0)


async def test_a_zombie_generation_cannot_commit(groups) -> None:
    leader, other = await groups.stable_group(2)
    await groups.leave(other.member_id)
    await groups.join(member=leader.member_id)
    with pytest.raises(KafkaError) as stale:
        await groups.commit(7, member=leader.member_id, generation=1)
    assert stale.value.code == ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(KafkaError) as gone:
        await groups.commit(7, member=other.member_id, generation=1)
    assert gone.value.code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_nobody_from_outside_commits_while_a_group_has_members(groups) -> None:
    await groups.stable_group(1)
    with pytest.raises(KafkaError) as refused:
        await groups.commit(7)
    assert refused.value.code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_commit_between_join_and_sync_is_told_of_the_rebalance(groups) -> None:
    joining = groups.join(version=3)
    await groups.pass_time(0)
    joined = await joining
    with pytest.raises(KafkaError) as refused:
        await groups.commit(7, member=joined.member_id, generation=1)
    assert refused.value.code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
async def test_a_member_of_a_group_that_does_not_exist_cannot_commit(groups, version, error) -> None:
    with pytest.raises(KafkaError) as refused:
        await groups.commit(7, member="m", generation=3, version=version)
    assert refused.value.code == error


async def test_commits_of_one_turn_share_one_batch(groups) -> None:
    before = len(groups.log("group").batches)
    await asyncio.gather(*(groups.commit(n, partition=n) for n in range(4)))
    assert len(groups.log("group").batches) == before + 1
    assert [await groups.fetch(partition=n) for n in range(4)] == [(n, 0) for n in range(4)]


async def test_commits_of_one_turn_never_add_up_to_a_batch_that_the_topic_refuses(groups) -> None:
    log = groups.log("group")
    append = log.append

    def limited(batch: bytearray) -> int:
        if len(batch) > 1_048_588:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "larger than message.max.bytes")
        return append(batch)

    log.append = limited
    commits = [groups.commit(n, partition=n, metadata="x" * 4096) for n in range(400)]
    assert set(await asyncio.gather(*commits)) == {ErrorCode.NONE}


async def test_a_fetch_sees_commits_that_came_before_it_in_the_same_turn(groups) -> None:
    commit = groups.commit(5)
    fetch = groups.fetch()
    assert await fetch == (5, 0)
    await commit


async def test_a_commit_is_answered_when_the_replicas_have_it_and_not_before(groups) -> None:
    log = groups.log("group")
    log.hold = True
    commit = groups.commit(5)
    await groups.settle()
    assert log.end_offset == 1
    assert not commit.done()
    fetch = asyncio.ensure_future(groups.fetch())
    await groups.settle()
    assert not fetch.done(), "an answer must not rest on what may still be lost"
    log.commit()
    await commit
    assert await fetch == (5, 0)


async def test_a_commit_that_the_replicas_never_confirm_times_out(groups) -> None:
    groups.log("group").hold = True
    commit = groups.commit(5)
    await groups.settle()
    await groups.pass_time(5)
    with pytest.raises(KafkaError) as late:
        await commit
    assert late.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("append", "answer"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_a_commit_that_cannot_be_appended_leaves_no_trace(groups, append, answer) -> None:
    await groups.commit(5)
    log = groups.log("group")
    log.refuse = KafkaError(append, "no")
    with pytest.raises(KafkaError) as refused:
        await groups.commit(6)
    assert refused.value.code == answer
    log.refuse = None
    assert await groups.fetch() == (5, 0)


async def test_acknowledged_commits_and_groups_survive_a_restart(groups) -> None:
    leader, other = await groups.stable_group(2)
    await groups.commit(10, member=leader.member_id, generation=1)
    await groups.commit(20, member=other.member_id, generation=1, partition=1)
    await groups.restart()
    assert await groups.fetch() == (10, 0)
    assert await groups.fetch(partition=1) == (20, 0)
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.NONE
    assert (await groups.sync(other)).assignment == other.member_id.encode()


async def test_the_offsets_of_an_empty_group_expire_after_the_retention(groups) -> None:
    (leader,) = await groups.stable_group(1)
    await groups.commit(10, member=leader.member_id, generation=1)
    for _ in range(20):
        await groups.pass_time(DAY / 2)  # its session ends within the first half day
    await groups.pass_time(600)
    assert await groups.fetch() == (-1, 0)
    assert groups.coordinator.list([], []) == []


async def test_offsets_expire_in_a_live_group_only_where_it_no_longer_subscribes(groups) -> None:
    groups.configure(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=1000)
    await groups.restart()
    (leader,) = await groups.stable_group(1)
    await groups.commit(10, member=leader.member_id, generation=1)
    await groups.commit(11, member=leader.member_id, generation=1, topic="payments")
    for _ in range(10):
        await groups.pass_time(9)
        assert groups.heartbeat(leader.member_id, 1) == ErrorCode.NONE
    assert await groups.fetch() == (10, 0)
    assert await groups.fetch(topic="payments") == (-1, 0)


async def test_the_offsets_of_a_simple_consumer_expire_after_its_last_commit(groups) -> None:
    await groups.commit(1)
    await groups.pass_time(6 * DAY)
    await groups.commit(2)
    await groups.pass_time(6 * DAY)
    assert await groups.fetch() == (2, 0)
    await groups.pass_time(1 * DAY + 600)
    assert await groups.fetch() == (-1, 0)
    await groups.restart()
    assert await groups.fetch() == (-1, 0)


async def test_any_number_of_offsets_goes_in_batches_of_a_bounded_size(groups) -> None:
    log = groups.log("group")
    for start in range(0, 2500, 500):
        await asyncio.gather(*(groups.commit(1, partition=n) for n in range(start, start + 500)))
    await groups.commit(1, topic="payments")
    before = len(log.batches)
    groups.coordinator.topics_deleted(["orders"])
    assert len(log.batches) == before + 3
    for start in range(0, 2500, 500):
        await asyncio.gather(*(groups.commit(1, partition=n) for n in range(start, start + 500)))
    before = len(log.batches)
    await groups.pass_time(8 * DAY)
    assert len(log.batches) == before + 3
    assert max(len(batch) for batch in log.batches) < 100_000
    assert groups.coordinator.list([], []) == []


async def test_a_retention_that_came_with_the_commit_is_kept_to(groups) -> None:
    await groups.commit(1, version=4, retention_ms=1800 * 1000)
    await groups.pass_time(1200)
    assert await groups.fetch() == (1, 0)
    await groups.pass_time(1200)
    assert await groups.fetch() == (-1, 0)


def delete_request(topic: str = "orders", *partitions: int) -> OffsetDeleteRequest:
    parts = [OffsetDeleteRequestPartition(partition) for partition in partitions or (0,)]
    return OffsetDeleteRequest("group", [OffsetDeleteRequestTopic(topic, parts)])


async def test_offsets_are_deleted_on_request(groups) -> None:
    await groups.commit(1)
    await groups.commit(2, partition=1)
    answer = await groups.coordinator.delete_offsets(delete_request("orders", 0))
    assert answer.topics[0].partitions[0].error_code == 0
    assert await groups.fetch() == (-1, 0)
    assert await groups.fetch(partition=1) == (2, 0)


async def test_offsets_of_a_topic_in_use_are_not_deleted(groups) -> None:
    (leader,) = await groups.stable_group(1)
    await groups.commit(1, member=leader.member_id, generation=1)
    await groups.commit(2, member=leader.member_id, generation=1, topic="payments")
    used = await groups.coordinator.delete_offsets(delete_request("orders"))
    assert used.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    unused = await groups.coordinator.delete_offsets(delete_request("payments"))
    assert unused.topics[0].partitions[0].error_code == 0
    assert await groups.fetch() == (1, 0)
    assert await groups.fetch(topic="payments") == (-1, 0)


async def test_offsets_go_with_their_topic(groups) -> None:
    await groups.commit(1)
    await groups.commit(2, topic="payments")
    groups.coordinator.topics_deleted(["orders"])
    assert await groups.fetch() == (-1, 0)
    assert await groups.fetch(topic="payments") == (2, 0)
    await groups.restart()
    assert await groups.fetch() == (-1, 0)


# Groups as administrators see them


async def test_a_group_with_members_cannot_be_deleted_and_an_empty_one_goes_with_its_offsets(groups) -> None:
    (leader,) = await groups.stable_group(1)
    await groups.commit(1, member=leader.member_id, generation=1)
    with pytest.raises(KafkaError) as refused:
        await groups.coordinator.delete("group")
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    await groups.leave(leader.member_id)
    await groups.coordinator.delete("group")
    assert groups.coordinator.list([], []) == []
    await groups.restart()
    assert groups.coordinator.list([], []) == []
    assert await groups.fetch() == (-1, 0)
    with pytest.raises(KafkaError) as unknown:
        await groups.coordinator.delete("group")
    assert unknown.value.code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_groups_are_listed_by_state_and_type_in_any_case(groups) -> None:
    await groups.stable_group(1, "busy")
    await groups.commit(1, group="simple")
    await groups.consumer("m", group="modern")

    def names(states: list[str], types: list[str]) -> set[str]:
        return {each.group_id for each in groups.coordinator.list(states, types)}

    assert names([], []) == {"busy", "simple", "modern"}
    assert names(["stable"], []) == {"busy", "modern"}
    assert names(["EMPTY"], []) == {"simple"}
    assert names([], ["Consumer"]) == {"modern"}
    assert names(["stable"], ["classic"]) == {"busy"}
    listed = {each.group_id: each for each in groups.coordinator.list([], [])}
    assert (listed["simple"].protocol_type, listed["busy"].protocol_type) == ("", "consumer")


async def test_an_unknown_group_is_dead_and_newer_clients_hear_why(groups) -> None:
    assert groups.coordinator.describe("nobody", 5).group_state == "Dead"
    assert groups.coordinator.describe("nobody", 5).error_code == 0
    newer = groups.coordinator.describe("nobody", 6)
    assert newer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert newer.error_message == "Group nobody does not exist."


# Transactions


def transactional(offset: int, generation: int = -1, member: str = "") -> TxnOffsetCommitRequest:
    topic = TxnOffsetCommitRequestTopic("orders", [TxnOffsetCommitRequestPartition(0, offset)])
    return TxnOffsetCommitRequest("tx", "group", 77, 0, generation, member, None, [topic])


async def test_offsets_of_a_transaction_count_from_its_commit_marker_on(groups) -> None:
    await groups.commit(1)
    client = Client("c", "/h", 5)
    await groups.coordinator.commit_transactional(client, transactional(9))
    assert await groups.fetch() == (1, 0)
    assert await groups.fetch(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    partition = groups.coordinator.partition_for("group")
    await groups.coordinator.end_transaction(partition, 77, 0, 0, True)
    assert await groups.fetch(stable=True) == (9, 0)
    await groups.restart()
    assert await groups.fetch(stable=True) == (9, 0)


async def test_offsets_of_an_aborted_transaction_never_were(groups) -> None:
    await groups.commit(1)
    await groups.coordinator.commit_transactional(Client("c", "/h", 5), transactional(9))
    await groups.restart()
    assert await groups.fetch(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    await groups.coordinator.end_transaction(groups.coordinator.partition_for("group"), 77, 0, 0, False)
    assert await groups.fetch(stable=True) == (1, 0)
    await groups.restart()
    assert await groups.fetch(stable=True) == (1, 0)


async def test_a_plain_commit_made_after_a_transactional_one_wins(groups) -> None:
    await groups.coordinator.commit_transactional(Client("c", "/h", 5), transactional(9))
    await groups.commit(20)
    await groups.coordinator.end_transaction(groups.coordinator.partition_for("group"), 77, 0, 0, True)
    assert await groups.fetch() == (20, 0)


async def test_a_transaction_that_names_no_member_commits_to_a_live_group_of_either_protocol(groups) -> None:
    client = Client("c", "/h", 5)
    await groups.stable_group(1)
    await groups.coordinator.commit_transactional(client, transactional(8))
    await groups.coordinator.end_transaction(groups.coordinator.partition_for("group"), 77, 0, 0, True)
    assert await groups.fetch() == (8, 0)
    await groups.consumer("m", group="modern")
    request = transactional(9)
    request.group_id = "modern"
    await groups.coordinator.commit_transactional(client, request)
    await groups.coordinator.end_transaction(groups.coordinator.partition_for("modern"), 77, 0, 0, True)
    assert await groups.fetch("modern") == (9, 0)
    request.member_id = "stranger"
    with pytest.raises(KafkaError) as refused:
        await groups.coordinator.commit_transactional(client, request)
    assert refused.value.code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_transaction_of_a_stale_generation_is_refused(groups) -> None:
    (leader,) = await groups.stable_group(1)
    with pytest.raises(KafkaError) as refused:
        await groups.coordinator.commit_transactional(
            Client("c", "/h", 5), transactional(9, 0, leader.member_id)
        )
    assert refused.value.code == ErrorCode.ILLEGAL_GENERATION
