"""ShareGroupDescribe: a share group as administrators see it."""

from __future__ import annotations

from headrace.server.groups.share.group import ShareGroup
from headrace.server.groups.topics import Topics
from headrace.wire.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

ASSIGNOR = "simple"


def describe(group: ShareGroup, topics: Topics) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[
            Member(
                member.member_id,
                member.rack_id,
                member.member_epoch,
                member.client_id,
                member.client_host,
                sorted(member.topics),
                Assignment(
                    [
                        TopicPartitions(topic_id, name, sorted(indexes))
                        for topic_id, indexes in member.assigned.items()
                        if (name := topics.topic_name(topic_id)) is not None
                    ]
                ),
            )
            for member in group.members.values()
        ],
    )
