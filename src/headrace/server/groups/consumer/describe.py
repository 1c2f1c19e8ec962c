"""ConsumerGroupDescribe: a consumer group as administrators see it."""

from __future__ import annotations

from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.consumer.member import NO_PARTITIONS
from headrace.server.groups.consumer.member import Assignment as Partitions
from headrace.server.groups.state import GroupState
from headrace.server.groups.topics import Topics
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe(state: GroupState, group_id: str) -> DescribedGroup:
    group = state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        what = "does not exist" if group is None else "is not a consumer group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
    topics = state.topics
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members.values(), state.config.consumer_assignors[0]),
        members=[
            Member(
                member.member_id,
                member.instance_id,
                member.rack_id,
                member.member_epoch,
                member.client_id,
                member.client_host,
                sorted(member.subscribed_topic_names),
                member.subscribed_topic_regex or None,
                _named(member.assigned, topics),
                _named(group.target.get(member.member_id, NO_PARTITIONS), topics),
                CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
            )
            for member in group.members.values()
        ],
    )


def _named(partitions: Partitions, topics: Topics) -> Assignment:
    return Assignment(
        [
            TopicPartitions(topic_id, name, sorted(each))
            for topic_id, each in partitions.items()
            if (name := topics.topic_name(topic_id)) is not None
        ]
    )
