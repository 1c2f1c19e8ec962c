"""DeleteGroups: remove empty groups with all their offsets.

- NON_EMPTY_GROUP while a group has members; GROUP_ID_NOT_FOUND for one that is not here.

- 1: throttle time  - 2: compact  - 3: an error in words
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import GROUP, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(context: Context, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    names = dict.fromkeys(request.groups_names)  # each once: the second time it would not be found
    return DeleteGroupsResponse(results=[await _delete(context, name) for name in names])


async def _delete(context: Context, group_id: str) -> DeletableGroupResult:
    try:
        context.require(Operation.DELETE, GROUP, group_id)
        return await context.engines.groups.delete(group_id)
    except KafkaError as error:
        return DeletableGroupResult(group_id, error.code, error.message or None)
