"""ShareGroupDescribe (KIP-932): epochs, members and assignments of share groups.

- GROUP_ID_NOT_FOUND for a group that is not here or is of another kind.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def handle(context: Context, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    groups = [_describe(context, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = context.operations_on(GROUP, group.group_id)
    return ShareGroupDescribeResponse(groups=groups)


def _describe(context: Context, group_id: str) -> DescribedGroup:
    try:
        context.engines.sharing.settings.require()
        context.require(Operation.DESCRIBE, GROUP, group_id)
        group = context.engines.groups.share.describe(group_id)
        topics = {
            topic.topic_name for member in group.members for topic in member.assignment.topic_partitions
        }
        if not all(context.may(Operation.DESCRIBE, TOPIC, name) for name in topics):
            raise KafkaError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "The group has described topic(s) that the client is not authorized to describe.",
            )
    except KafkaError as error:
        return DescribedGroup(error.code, error.message, group_id)
    return group
