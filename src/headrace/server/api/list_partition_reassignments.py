"""ListPartitionReassignments: which partitions are on the move, from where and to where.

- The controller knows first; another broker passes the request on, and answers by itself when there is no controller.
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.reassignments import list_reassignments
from headrace.server.security.operations import Operation
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@requires_on_cluster(Operation.DESCRIBE)
@to_controller
async def handle(
    context: Context, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return list_reassignments(context.engines.cluster.image, request)
