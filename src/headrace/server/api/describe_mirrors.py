"""DescribeMirrors: the mirror links of the cluster, and how far the partitions are that this broker leads.

Headrace's own; not advertised. The reply's document is what `server/mirror/description.py` makes; secrets are not in it.
"""

from __future__ import annotations

import json

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.mirror.description import describe
from headrace.server.security.operations import Operation
from headrace.wire.messages.describe_mirrors import DescribeMirrorsRequest, DescribeMirrorsResponse


@requires_on_cluster(Operation.DESCRIBE)
def handle(context: Context, request: DescribeMirrorsRequest) -> DescribeMirrorsResponse:
    engines = context.engines
    links = describe(engines.cluster.image, engines.mirrors, engines.clock)
    return DescribeMirrorsResponse(document=json.dumps(links, separators=(",", ":")))
