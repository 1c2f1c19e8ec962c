"""DescribeAcls: the ACLs that a filter picks, by resource.

- Any broker answers, from its own copy of the metadata.
- SECURITY_DISABLED where there is no authorizer.
- 2: compact  - 3: the resource type USER
"""

from __future__ import annotations

from headrace.server.api.acl_requests import require_acls
from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.cluster.acls import complaint_about, matching
from headrace.server.security.acls import AclFilter
from headrace.server.security.operations import Operation
from headrace.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


@requires_on_cluster(Operation.DESCRIBE)
def handle(context: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    require_acls(context)
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    complaint = complaint_about(wanted)
    if complaint is not None:
        raise complaint
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in sorted(matching(context.engines.cluster.image, wanted)):
        resource = resources.setdefault(
            acl[:3], DescribeAclsResource(acl.resource_type, acl.resource_name, acl.pattern_type)
        )
        resource.acls.append(AclDescription(acl.principal, acl.host, acl.operation, acl.permission))
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))
