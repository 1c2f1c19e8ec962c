"""AllocateProducerIds: a broker asks the controller for a block of producer ids. Between brokers only; not advertised."""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.cluster.decisions import allocate_producer_ids
from headrace.server.security.operations import Operation
from headrace.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


@requires_on_cluster(Operation.CLUSTER_ACTION)
async def handle(context: Context, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    allocate = allocate_producer_ids(request.broker_id, request.broker_epoch)
    first, count = await context.engines.cluster.own_controller.decide(allocate)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count)
