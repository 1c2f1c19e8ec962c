"""Removing offsets: by request (OffsetDelete), with their group, with their topic, or when they expire."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.offsets.store import CommittedOffset, tombstone
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import Group, GroupState
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

MOST_TOMBSTONES = 1000


def delete_offsets(
    state: GroupState, request: OffsetDeleteRequest
) -> Write[GroupRecord, OffsetDeleteResponse]:
    group = state.group(request.group_id)
    group.validate_offset_delete()
    records = []
    topics = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        partitions = [each.partition_index for each in topic.partitions]
        topics.append(
            OffsetDeleteResponseTopic(
                topic.name, [OffsetDeleteResponsePartition(partition, error) for partition in partitions]
            )
        )
        if not subscribed:
            records += [
                tombstone(request.group_id, topic.name, partition)
                for partition in partitions
                if state.offsets.get(request.group_id, topic.name, partition) is not None
                or state.offsets.is_pending(request.group_id, topic.name, partition)
            ]
    return Write(records, OffsetDeleteResponse(topics=topics))


def all_offset_tombstones(state: GroupState, group_id: str) -> list[GroupRecord]:
    return [
        tombstone(group_id, topic, partition) for topic, partition in state.offsets.all_partitions(group_id)
    ]


def delete_topics(state: GroupState, topics: Iterable[str]) -> list[Write[GroupRecord, None]]:
    """The topics are gone: a topic of the same name must not start from their offsets."""
    return _in_batches(
        [
            tombstone(group_id, topic, partition)
            for topic in topics
            for group_id, partition in state.offsets.of_topic(topic)
        ]
    )


def expire(state: GroupState) -> list[Write[GroupRecord, None]]:
    """Remove what is older than the retention, and groups that are empty and have nothing left."""
    records: list[GroupRecord] = []
    for group in list(state.groups.values()):
        if _expire_offsets(state, group, records) and group.is_empty and not _has_joiners(group):
            records += group.tombstones()
    return _in_batches(records)


def _in_batches(records: list[GroupRecord]) -> list[Write[GroupRecord, None]]:
    """Each goes by itself, so however many there are, no batch is larger than a topic takes."""
    return [
        Write(records[start : start + MOST_TOMBSTONES], None)
        for start in range(0, len(records), MOST_TOMBSTONES)
    ]


def _has_joiners(group: Group) -> bool:
    return isinstance(group, ClassicGroup) and bool(group.pending_joins)


def _expire_offsets(state: GroupState, group: Group, records: list[GroupRecord]) -> bool:
    """Whether the group then has no offset left."""
    if not _may_expire(group):
        return not state.offsets.of_group(group.group_id)
    now = state.clock.now_ms()
    all_gone = True
    for topic, partitions in state.offsets.of_group(group.group_id).items():
        subscribed = group.is_subscribed_to(topic)
        for partition, committed in partitions.items():
            if (
                not subscribed
                and now >= _expires_at(state, group, committed)
                and not state.offsets.is_pending(group.group_id, topic, partition)
            ):
                records.append(tombstone(group.group_id, topic, partition))
            else:
                all_gone = False
    return all_gone and not state.offsets.has_open_transactions(group.group_id)


def _may_expire(group: Group) -> bool:
    if not isinstance(group, ClassicGroup) or group.protocol_type is None or group.is_empty:
        return True
    return group.subscribed_topics is not None and group.state is ClassicState.STABLE


def _expires_at(state: GroupState, group: Group, committed: CommittedOffset) -> int:
    if committed.expire_timestamp != -1:
        return committed.expire_timestamp
    since = committed.commit_timestamp
    if isinstance(group, ClassicGroup) and group.protocol_type is not None and group.is_empty:
        # A group keeps its offsets for the retention after its last member has gone.
        since = since if group.state_since_ms is None else group.state_since_ms
    return since + state.config.offsets_retention_ms
