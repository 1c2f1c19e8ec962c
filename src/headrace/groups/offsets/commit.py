"""OffsetCommit and TxnOffsetCommit: who may commit, and the records that say what."""

from __future__ import annotations

from headrace.coordinator.write import Write
from headrace.groups.classic.group import ClassicGroup, ClassicState
from headrace.groups.classic.rebalance import expect_heartbeat
from headrace.groups.client import Client
from headrace.groups.records import GroupRecord, OffsetCommitKey, OffsetCommitValue
from headrace.groups.state import Group, GroupState
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_VERSION_FOR_CONSUMER_GROUPS = 9


def commit(
    state: GroupState, client: Client, request: OffsetCommitRequest
) -> tuple[list[GroupRecord], OffsetCommitResponse]:
    group = _find_group(state, client, request.group_id, request.generation_id_or_member_epoch)
    if isinstance(group, ClassicGroup):
        group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            transactional=False,
        )
        if group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
            expect_heartbeat(state, group, group.members[request.member_id])  # a commit is a sign of life
    else:
        group.validate_offset_commit(
            request.member_id,
            request.generation_id_or_member_epoch,
            transactional=False,
            speaks_consumer_protocol=client.version >= FIRST_VERSION_FOR_CONSUMER_GROUPS,
        )
    now = state.clock.now_ms()
    expires = -1 if request.retention_time_ms == -1 else now + request.retention_time_ms
    records: list[GroupRecord] = []
    topics = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            metadata = each.committed_metadata or ""
            error = ErrorCode.NONE
            if len(metadata) > state.config.offset_metadata_max_bytes:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                records.append(
                    GroupRecord(
                        OffsetCommitKey(request.group_id, topic.name, each.partition_index),
                        OffsetCommitValue(
                            each.committed_offset, each.committed_leader_epoch, metadata, now, expires
                        ),
                    )
                )
            partitions.append(OffsetCommitResponsePartition(each.partition_index, error))
        topics.append(OffsetCommitResponseTopic(topic.name, partitions))
    return records, OffsetCommitResponse(topics=topics)


def refuse(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition, which is the only place the answer has for one."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                [OffsetCommitResponsePartition(each.partition_index, error) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


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
                request.member_id, request.generation_id, transactional=True, speaks_consumer_protocol=True
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


def _find_group(state: GroupState, client: Client, group_id: str, generation: int) -> Group:
    group = state.groups.get(group_id)
    if group is not None:
        return group
    if generation < 0:
        return state.create_simple_group(group_id)
    if client.version >= FIRST_VERSION_FOR_CONSUMER_GROUPS:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} does not exist.")
    raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"Group {group_id} does not exist.")
