"""UnregisterBroker: forget a broker for good, once its replicas have been moved away.

- The controller decides; another broker passes the request on. A broker that is alive registers again at once.
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import unregister_broker
from headrace.server.security.operations import Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@requires_on_cluster(Operation.ALTER)
@to_controller
async def handle(context: Context, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    try:
        await context.engines.cluster.decide(unregister_broker(request.broker_id))
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
    return UnregisterBrokerResponse(error_message=None)
