"""AlterPartitionReassignments: move partitions to other brokers; null replicas cancel a move.

- The controller decides; another broker passes the request on. The move itself takes the time the data takes.
- 1: the client can forbid a change of the replication factor
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import alter_reassignments
from headrace.server.security.operations import CLUSTER, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    try:
        context.require(Operation.ALTER, *CLUSTER)
    except KafkaError as error:
        return _denied(request, error)
    return await _alter(context, request)


def _denied(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [
                    ReassignablePartitionResponse(each.partition_index, error.code, error.message)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@to_controller
async def _alter(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    return await context.engines.cluster.decide(alter_reassignments(request))
