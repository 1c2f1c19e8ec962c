"""DeleteAcls: removes the ACLs that filters pick; the reply tells which they were.

- The controller decides; another broker passes the request on.
- SECURITY_DISABLED where there is no authorizer.
- 2: compact  - 3: the resource type USER
"""

from __future__ import annotations

from headrace.server.api.acl_requests import require_acls
from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import delete_acls
from headrace.server.security.acls import Acl, AclFilter
from headrace.server.security.operations import CLUSTER, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


async def handle(context: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    try:
        context.require(Operation.ALTER, *CLUSTER)
        require_acls(context)
        return await _delete(context, request)
    except KafkaError as error:
        return DeleteAclsResponse(filter_results=[_result([], error) for _ in request.filters])


@to_controller
async def _delete(context: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    filters = [
        AclFilter(
            asked.resource_type_filter,
            asked.resource_name_filter,
            asked.pattern_type_filter,
            asked.principal_filter,
            asked.host_filter,
            asked.operation,
            asked.permission_type,
        )
        for asked in request.filters
    ]
    removed = await context.engines.cluster.decide(delete_acls(filters))
    return DeleteAclsResponse(filter_results=[_result(acls, error) for acls, error in removed])


def _result(removed: list[Acl], error: KafkaError | None) -> DeleteAclsFilterResult:
    if error is not None:
        return DeleteAclsFilterResult(error.code, error.message)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in removed
        ],
    )
