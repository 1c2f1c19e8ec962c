"""ReportMirrors: leaders tell the controller about mirrored partitions. Between brokers only; not advertised.

The document is a `server.mirror.reports.Report`.
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.mirror.reports import Report, note
from headrace.server.security.operations import Operation
from headrace.wire.messages.report_mirrors import ReportMirrorsRequest, ReportMirrorsResponse


@requires_on_cluster(Operation.CLUSTER_ACTION)
async def handle(context: Context, request: ReportMirrorsRequest) -> ReportMirrorsResponse:
    await context.engines.cluster.own_controller.decide(note(Report.from_json(request.document)))
    return ReportMirrorsResponse()
