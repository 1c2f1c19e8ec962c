"""CreateAcls: each ACL by itself is made, exists already, or is refused with a sentence.

- The controller decides; another broker passes the request on.
- SECURITY_DISABLED where there is no authorizer.
- 2: compact  - 3: the resource type USER
"""

from __future__ import annotations

from headrace.server.api.acl_requests import require_acls
from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import create_acls
from headrace.server.security.acls import Acl
from headrace.server.security.operations import CLUSTER, Operation, ResourceKind
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


async def handle(context: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    try:
        context.require(Operation.ALTER, *CLUSTER)
        require_acls(context)
        return await _create(context, request)
    except KafkaError as error:
        return CreateAclsResponse(results=[_result(error) for _ in request.creations])


@to_controller
async def _create(context: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    refused = [_complaint(asked) for asked in request.creations]
    wanted = [
        Acl(
            asked.resource_type,
            asked.resource_name,
            asked.resource_pattern_type,
            asked.principal,
            asked.host,
            asked.operation,
            asked.permission_type,
        )
        for asked, complaint in zip(request.creations, refused, strict=True)
        if complaint is None
    ]
    decided = await context.engines.cluster.decide(create_acls(wanted))
    results = iter(decided)
    return CreateAclsResponse(results=[_result(each or next(results)) for each in refused])


def _complaint(asked: AclCreation) -> KafkaError | None:
    if asked.resource_type == ResourceKind.CLUSTER and asked.resource_name != CLUSTER.name:
        text = f"The only valid name for the CLUSTER resource is {CLUSTER.name}"
    elif not asked.resource_name:
        text = "Invalid empty resource name"
    else:
        return None
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error.code, error.message)
