"""Share groups (KIP-932): their members, where they begin in each partition, and how many records they have not finished."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.client.administration import offsets
from headrace.client.administration.errors import check
from headrace.client.administration.groups import Description, Member
from headrace.client.administration.lag import Position
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.link.cluster import GROUP
from headrace.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from headrace.wire.messages.share_group_describe import ShareGroupDescribeRequest

TYPE = "Share"


def describe(session: Session, group: str) -> Description:
    """Raises Refused: GROUP_ID_NOT_FOUND when there is no such share group, UNSUPPORTED_VERSION when the cluster has none at all."""
    request = ShareGroupDescribeRequest([group])
    found = session.call_coordinator(GROUP, group, request, lambda a: a.groups[0].error_code).groups[0]
    check(found.error_code, found.error_message)
    members = [
        Member(
            member_id=each.member_id,
            instance_id=None,
            client_id=each.client_id,
            host=each.client_host,
            assignment=sorted(
                (topic.topic_name, index)
                for topic in each.assignment.topic_partitions
                for index in topic.partitions
            ),
            target=None,
            epoch=each.member_epoch,
            upgraded=None,
        )
        for each in found.members
    ]
    return Description(
        found.group_id,
        TYPE,
        found.group_state,
        found.assignor_name,
        session.coordinator(GROUP, group),
        members,
        found.group_epoch,
        found.assignment_epoch,
    )


def positions(session: Session, group: str, others: Iterable[Partition] = ()) -> dict[Partition, Position]:
    """Of every partition that the group has begun to read, and of `others`. Members finish records in any order, so what counts is
    how many are not finished; where a broker does not say, all since the first of them."""
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group)])
    answer = session.call_coordinator(GROUP, group, request, lambda a: a.groups[0].error_code).groups[0]
    check(answer.error_code, answer.error_message)
    begun = {
        (topic.topic_name, each.partition_index): each
        for topic in answer.topics
        for each in topic.partitions
        if not each.error_code and each.start_offset >= 0
    }
    wanted = sorted({*begun, *others})
    ends, refusals = offsets.list_offsets(session, wanted, offsets.LATEST)
    found = {}
    for key in wanted:
        place = begun.get(key)
        found[key] = Position(
            None if place is None else place.start_offset,
            None if place is None else place.leader_epoch,
            ends[key] if key in ends else refusals[key],
            place.lag if place is not None and place.lag >= 0 else None,
        )
    return found
