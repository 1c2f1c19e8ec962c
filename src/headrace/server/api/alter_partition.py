"""AlterPartition: a leader asks the controller to shrink or grow an ISR. Between brokers only; not advertised."""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


@requires_on_cluster(Operation.CLUSTER_ACTION)
async def handle(context: Context, request: AlterPartitionRequest) -> AlterPartitionResponse:
    controller = context.engines.cluster.controller
    if controller is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return await controller.alter_partition(request)
