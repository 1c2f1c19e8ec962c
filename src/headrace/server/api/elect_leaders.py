"""ElectLeaders: the preferred leader for partitions, or any live replica for those that have none.

- The controller decides; another broker passes the request on.
- 1: the client names the kind of election  - without a list, all partitions are meant
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import elect_leaders
from headrace.server.security.operations import CLUSTER, Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


async def handle(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    try:
        context.require(Operation.ALTER, *CLUSTER)
    except KafkaError as error:
        return _denied(request, error)
    return await _elect(context, request)


@to_controller
async def _elect(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    return await context.engines.cluster.decide(elect_leaders(request))


def _denied(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    """With the error for each partition, too: version 0 has no other place for it."""
    return ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            ReplicaElectionResult(
                topic.topic,
                [PartitionResult(index, error.code, error.message) for index in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ],
    )
