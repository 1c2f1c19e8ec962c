"""ListGroups: the groups that this broker coordinates.

- Filters by state and by type compare without regard to case; names that do not exist match nothing.

- 1: throttle time  - 3: compact  - 4: states  - 5: types
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(context: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    groups = context.engines.groups.list(request.states_filter, request.types_filter)
    if not context.may_on_cluster(Operation.DESCRIBE, asked_for=False):
        groups, _ = context.split(
            Operation.DESCRIBE, GROUP, groups, lambda each: each.group_id, asked_for=False
        )
    return ListGroupsResponse(groups=groups)
