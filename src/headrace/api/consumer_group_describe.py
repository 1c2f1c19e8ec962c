"""ConsumerGroupDescribe (KIP-848): epochs, members and assignments of groups of the consumer protocol.

- GROUP_ID_NOT_FOUND for a group that is not here or is a classic one; clients then ask DescribeGroups.

- 1: member type, for groups that are changing protocol
"""

from __future__ import annotations

from headrace.api.context import Context
from headrace.api.operations import ON_GROUP
from headrace.wire.errors import KafkaError
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
                group.authorized_operations = ON_GROUP
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(context: Context, group_id: str) -> DescribedGroup:
    try:
        return context.services.groups.describe_consumer(group_id)
    except KafkaError as error:
        return DescribedGroup(error.code, error.message, group_id)
