"""ElectLeaders: the preferred leader for partitions, or any live replica for those that have none.

- The controller decides; another broker passes the request on.
- 1: the client names the kind of election  - without a list, all partitions are meant
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import elect_leaders
from headrace.server.security.operations import Operation
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


@requires_on_cluster(Operation.ALTER)
@to_controller
async def handle(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    return await context.engines.cluster.decide(elect_leaders(request))
