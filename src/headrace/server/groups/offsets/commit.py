"""OffsetCommit and TxnOffsetCommit: which commits are valid, and the records that store them."""

from __future__ import annotations

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.rebalance import expect_heartbeat
from headrace.server.groups.client import Client
from headrace.server.groups.records import GroupRecord, OffsetCommitKey, OffsetCommitValue
from headrace.server.groups.state import Group, GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from headrace.wire.offset_commit import Commit, TopicCommit, TopicResult

FIRST_VERSION_FOR_CONSUMER_GROUPS = 9
NEVER = 2**63 - 1
"""The last moment that a record can name."""


def commit(state: GroupState, version: int, request: Commit) -> tuple[list[GroupRecord], list[TopicResult]]:
    """The records, and the answer for when they are stored."""
    group_id, generation = request.group_id, request.generation
    group = _find_group(state, version, group_id, generation)
    if isinstance(group, ClassicGroup):
        group.validate_offset_commit(request.member_id, request.instance_id, generation, transactional=False)
        if group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
            expect_heartbeat(state, group, group.members[request.member_id])  # a commit is a sign of life
    else:
        group.validate_offset_commit(
            request.member_id,
            request.instance_id,
            generation,
            transactional=False,
            speaks_consumer_protocol=version >= FIRST_VERSION_FOR_CONSUMER_GROUPS,
        )
    now = state.clock.now_ms()
    expires = -1 if request.retention_ms == -1 else min(now + request.retention_ms, NEVER)
    longest = state.config.offset_metadata_max_bytes
    records: list[GroupRecord] = []
    results: list[TopicResult] = []
    for topic, partitions in request.topics:
        answers: list[tuple[int, int]] = []
        for partition, offset, leader_epoch, metadata in partitions:
            if len(metadata) > longest:
                answers.append((partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            answers.append((partition, 0))
            value = OffsetCommitValue(offset, leader_epoch, metadata, now, expires)
            records.append(GroupRecord(OffsetCommitKey(group_id, topic, partition), value))
        results.append((topic, answers))
    return records, results


def refuse(topics: list[TopicCommit], error: ErrorCode) -> list[TopicResult]:
    """The same error for every partition, which is the only place the answer has for one."""
    return [(topic, [(each.partition, error) for each in partitions]) for topic, partitions in topics]


def commit_transactional(
    state: GroupState, client: Client, request: TxnOffsetCommitRequest
) -> Write[GroupRecord, TxnOffsetCommitResponse]:
    """The same for a transaction. Appended with its producer id, the records wait for its marker."""
    group = state.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"Group {request.group_id} does not exist.")
        group = state.create_simple_group(request.group_id)
    if isinstance(group, ClassicGroup):
        group.validate_offset_commit(
            request.member_id, request.group_instance_id, request.generation_id, transactional=True
        )
    else:
        try:
            group.validate_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                transactional=True,
                speaks_consumer_protocol=True,
            )
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
            raise
    now = state.clock.now_ms()
    records: list[GroupRecord] = []
    topics = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            metadata = each.committed_metadata or ""
            error_code = ErrorCode.NONE
            if len(metadata) > state.config.offset_metadata_max_bytes:
                error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                records.append(
                    GroupRecord(
                        OffsetCommitKey(request.group_id, topic.name, each.partition_index),
                        OffsetCommitValue(each.committed_offset, each.committed_leader_epoch, metadata, now),
                    )
                )
            partitions.append(TxnOffsetCommitResponsePartition(each.partition_index, error_code))
        topics.append(TxnOffsetCommitResponseTopic(topic.name, partitions))
    return Write(records, TxnOffsetCommitResponse(topics=topics))


def _find_group(state: GroupState, version: int, group_id: str, generation: int) -> Group:
    group = state.groups.get(group_id)
    if group is not None:
        return group
    if generation < 0:
        return state.create_simple_group(group_id)
    if version >= FIRST_VERSION_FOR_CONSUMER_GROUPS:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} does not exist.")
    raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"Group {group_id} does not exist.")
