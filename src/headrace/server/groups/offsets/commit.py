"""OffsetCommit and TxnOffsetCommit: which commits are valid, and the records that store them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.classic.rebalance import expect_heartbeat
from headrace.server.groups.client import Client
from headrace.server.groups.messages.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.server.groups.offsets.form import CommitForm
from headrace.server.groups.records import GroupRecord
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


class PreparedCommit:
    """A commit that can be stored again and again, with other offsets."""

    __slots__ = ("forms", "offsets", "request", "results", "version")

    def __init__(self, version: int, request: Commit, longest_metadata: int) -> None:
        """INVALID_REQUEST for what no record can say. Metadata beyond `longest_metadata` is refused for its partition."""
        self.version = version
        self.request = request
        self.forms: list[CommitForm] = []
        self.offsets: list[int] = []
        """What the request itself commits, one for each form."""
        self.results: list[TopicResult] = []
        """The answer for when it is stored."""
        try:
            for topic, partitions in request.topics:
                answers: list[tuple[int, int]] = []
                for partition, offset, leader_epoch, metadata in partitions:
                    if len(metadata) > longest_metadata:
                        answers.append((partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                        continue
                    answers.append((partition, 0))
                    self.forms.append(CommitForm(request.group_id, topic, partition, leader_epoch, metadata))
                    self.offsets.append(offset)
                self.results.append((topic, answers))
        except (struct.error, ValueError) as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"This cannot be stored: {error}.") from None


class StoringCommit:
    """A commit on its way into the log (`coordinator.batch.Queued`)."""

    __slots__ = ("_now", "_offsets", "_prepared", "_state", "done")

    def __init__(
        self,
        state: GroupState,
        prepared: PreparedCommit,
        offsets: Sequence[int],
        done: Callable[[KafkaError | None], None],
    ) -> None:
        self._state = state
        self._prepared = prepared
        self._offsets = offsets
        self._now = state.clock.now_ms()
        self.done = done

    def encode(self, index: int) -> list[bytes]:
        now = self._now
        records = []
        for form, offset in zip(self._prepared.forms, self._offsets, strict=True):
            records.append(form.encode(index, offset, now))
            index += 1
        return records

    def stored(self, offset: int) -> None:
        prepared = self._prepared
        self._state.commit_offsets(
            prepared.request.group_id, prepared.forms, self._offsets, self._now, offset
        )


def check(state: GroupState, prepared: PreparedCommit) -> None:
    """Whether the group takes this commit now; KafkaError if not."""
    version, request = prepared.version, prepared.request
    generation = request.generation
    group = _find_group(state, version, request.group_id, generation)
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


def commit_with_retention(
    state: GroupState, prepared: PreparedCommit, offsets: Sequence[int]
) -> Write[GroupRecord, None]:
    """As clients before 2.1 could: each offset has a time of its own to expire."""
    now, request = state.clock.now_ms(), prepared.request
    expires = min(now + request.retention_ms, NEVER)
    return Write(
        [
            GroupRecord(
                OffsetCommitKey(request.group_id, form.topic, form.partition),
                OffsetCommitValue(offset, form.leader_epoch, form.metadata, now, expires),
            )
            for form, offset in zip(prepared.forms, offsets, strict=True)
        ],
        None,
    )


def refuse(topics: list[TopicCommit], error: ErrorCode) -> list[TopicResult]:
    """The same error for every partition, which is the only place the answer has for one."""
    return [(topic, [(each.partition, error) for each in partitions]) for topic, partitions in topics]


def commit_transactional(
    state: GroupState, client: Client, request: TxnOffsetCommitRequest, knows_member_epochs: bool
) -> Write[GroupRecord, TxnOffsetCommitResponse]:
    """The same for a transaction. Appended with its producer id, the records wait for its marker."""
    group = state.groups.get(request.group_id)
    if group is None:
        if request.generation_id_or_member_epoch >= 0:
            missing = ErrorCode.GROUP_ID_NOT_FOUND if knows_member_epochs else ErrorCode.ILLEGAL_GENERATION
            raise KafkaError(missing, f"Group {request.group_id} does not exist.")
        group = state.create_simple_group(request.group_id)
    if isinstance(group, ClassicGroup):
        group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            transactional=True,
        )
    else:
        try:
            group.validate_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id_or_member_epoch,
                transactional=True,
                speaks_consumer_protocol=True,
            )
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH and not knows_member_epochs:
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
