"""DescribeGroups: members, protocol and state of classic groups.

- A group that is not here is Dead; from version 6 on it is also GROUP_ID_NOT_FOUND, with the reason.
- Subscriptions and assignments are shown while the group is stable.

- 1: throttle time  - 3: authorized operations  - 4: instance ids  - 5: compact  - 6: error message
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle(context: Context, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups = [_describe(context, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = context.operations_on(GROUP, group.group_id)
    return DescribeGroupsResponse(groups=groups)


def _describe(context: Context, group_id: str) -> DescribedGroup:
    try:
        context.require(Operation.DESCRIBE, GROUP, group_id)
        return context.engines.groups.describe(group_id, context.version)
    except KafkaError as error:
        return DescribedGroup(error.code, error.message, group_id)
