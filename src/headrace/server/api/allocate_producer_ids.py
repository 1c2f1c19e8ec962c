"""AllocateProducerIds: a broker asks the controller for a block of producer ids. Between brokers only; not advertised."""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


@requires_on_cluster(Operation.CLUSTER_ACTION)
async def handle(context: Context, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    controller = context.engines.cluster.controller
    if controller is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        first, count = await controller.allocate_producer_ids(request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count)
