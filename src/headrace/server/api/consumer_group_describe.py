"""ConsumerGroupDescribe (KIP-848): epochs, members and assignments of groups of the consumer protocol.

- GROUP_ID_NOT_FOUND for a group that is not here or is a classic one; clients then ask DescribeGroups.

- 1: member type, for groups that are changing protocol
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.group_client import require_protocol
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(context: Context, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    groups = [_describe(context, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = context.operations_on(GROUP, group.group_id)
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(context: Context, group_id: str) -> DescribedGroup:
    try:
        require_protocol(context)
        context.require(Operation.DESCRIBE, GROUP, group_id)
        return _with_topics_checked(context, context.engines.groups.describe_consumer(group_id))
    except KafkaError as error:
        return DescribedGroup(error.code, error.message, group_id)


def _with_topics_checked(context: Context, group: DescribedGroup) -> DescribedGroup:
    """The members' assignments name topics, which the client must be allowed to see."""
    topics = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if all(context.may(Operation.DESCRIBE, TOPIC, name) for name in topics):
        return group
    return DescribedGroup(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The group has described topic(s) that the client is not authorized to describe.",
        group.group_id,
    )
