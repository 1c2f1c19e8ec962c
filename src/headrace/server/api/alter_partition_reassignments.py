"""AlterPartitionReassignments: move partitions to other brokers; null replicas cancel a move.

- The controller decides; another broker passes the request on. The move itself takes the time the data takes.
- 1: the client can forbid a change of the replication factor
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import alter_reassignments
from headrace.server.security.operations import Operation
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


@requires_on_cluster(Operation.ALTER)
@to_controller
async def handle(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    return await context.engines.cluster.decide(alter_reassignments(request))
