"""Share groups (KIP-932): their members, where they begin, what they have not finished, and moving or forgetting that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.client.administration.errors import Refused, check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.link.cluster import GROUP
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import alter_share_group_offsets as alter
from headrace.wire.messages import describe_share_group_offsets as offsets
from headrace.wire.messages import share_group_describe as members
from headrace.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)

TYPE = "Share"
NOT_BEGUN = -1
UNKNOWN_LAG = -1
_NOT_ONE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """Where a share group is in a partition."""

    start: int | None
    """Everything before it is done with; None where the group has not begun."""
    leader_epoch: int
    lag: int | None
    """Records that are not done with, from the start on; None where the broker cannot say."""


def described(session: Session, group: str) -> tuple[members.DescribedGroup, int]:
    """With the broker that coordinates it. Raises Refused (GROUP_ID_NOT_FOUND) for a group that is not there, or is no share group."""
    request = members.ShareGroupDescribeRequest([group])
    answer = session.call_coordinator(GROUP, group, request, lambda a: a.groups[0].error_code).groups[0]
    check(answer.error_code, answer.error_message)
    return answer, session.coordinator(GROUP, group)


def is_one(session: Session, group: str) -> bool:
    try:
        described(session, group)
    except Refused as refused:
        if refused.code in _NOT_ONE:
            return False
        raise
    return True


def places(session: Session, group: str) -> dict[Partition, ShareOffset]:
    """Of every partition that the group has begun or is about to."""
    asked = offsets.DescribeShareGroupOffsetsRequestGroup(group, None)
    answer = session.call_coordinator(
        GROUP,
        group,
        offsets.DescribeShareGroupOffsetsRequest([asked]),
        lambda reply: reply.groups[0].error_code,
    ).groups[0]
    check(answer.error_code, answer.error_message)
    found: dict[Partition, ShareOffset] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            check(each.error_code, each.error_message)
            begun = each.start_offset != NOT_BEGUN
            lag = each.lag if begun and each.lag != UNKNOWN_LAG else None
            found[topic.topic_name, each.partition_index] = ShareOffset(
                each.start_offset if begun else None, each.leader_epoch, lag
            )
    return found


def move(session: Session, group: str, starts: Mapping[Partition, int]) -> dict[Partition, BrokerError]:
    """Have a group without members begin elsewhere. Returns the refusals."""
    topics: dict[str, alter.AlterShareGroupOffsetsRequestTopic] = {}
    for (topic, index), offset in starts.items():
        asked = topics.setdefault(topic, alter.AlterShareGroupOffsetsRequestTopic(topic))
        asked.partitions.append(alter.AlterShareGroupOffsetsRequestPartition(index, offset))
    request = alter.AlterShareGroupOffsetsRequest(group, list(topics.values()))
    answer = session.call_coordinator(GROUP, group, request, lambda reply: reply.error_code)
    check(answer.error_code, answer.error_message)
    return {
        (topic.topic_name, each.partition_index): Refused(each.error_code, each.error_message)
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code
    }


def forget(session: Session, group: str, topics: Collection[str]) -> dict[str, Refused | None]:
    """Have a group without members forget topics; each with why it was refused, if it was."""
    request = DeleteShareGroupOffsetsRequest(
        group, [DeleteShareGroupOffsetsRequestTopic(topic) for topic in topics]
    )
    answer = session.call_coordinator(GROUP, group, request, lambda reply: reply.error_code)
    check(answer.error_code, answer.error_message)
    return {
        each.topic_name: Refused(each.error_code, each.error_message) if each.error_code else None
        for each in answer.responses
    }
