"""AlterPartition: a leader asks the controller to shrink or grow an ISR. Between brokers only; not advertised."""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.cluster.decisions import alter_partition
from headrace.server.security.operations import Operation
from headrace.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


@requires_on_cluster(Operation.CLUSTER_ACTION)
async def handle(context: Context, request: AlterPartitionRequest) -> AlterPartitionResponse:
    # The leader waits for this reply; it does not need the controller's own image to show the change.
    return await context.engines.cluster.own_controller.decide(alter_partition(request))
