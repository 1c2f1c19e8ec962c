"""ListPartitionReassignments: which partitions are on the move, from where and to where. Any broker knows."""

from __future__ import annotations

from headrace.api.context import Context
from headrace.cluster.reassignments import list_reassignments
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    context: Context, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return list_reassignments(context.services.cluster.image, request)
