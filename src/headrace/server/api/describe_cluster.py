"""DescribeCluster: the cluster's id, its controller and its brokers.

- 1: the client asks for brokers or controllers; here every address is a broker's.
- 2: fenced brokers too, when asked for.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import CLUSTER, Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=(
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
                if known
                else f"Unsupported endpoint type {request.endpoint_type}"
            ),
        )
    image = context.engines.cluster.image
    listener = context.connection.listener_name
    brokers = []
    for broker in image.brokers.values():
        endpoint = broker.endpoint(listener)
        if broker.fenced and not request.include_fenced_brokers:
            continue
        if endpoint is not None:
            brokers.append(
                DescribeClusterBroker(broker.id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
            )
    response = DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id if image.alive(image.controller_id) else -1,
        brokers=brokers,
    )
    if request.include_cluster_authorized_operations:
        may_see = context.may_on_cluster(Operation.DESCRIBE)
        response.cluster_authorized_operations = context.operations_on(*CLUSTER) if may_see else 0
    return response
