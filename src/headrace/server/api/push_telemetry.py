"""PushTelemetry (KIP-714): a client's metrics, in OpenTelemetry's format.

- Too early, for an old subscription, too large, with an unknown compression or unreadable: each has its error, as in Kafka.
- A client that says it is terminating may push at once, and then never again.
- Nobody needs a permission.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.get_telemetry_subscriptions import identity_of
from headrace.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


async def handle(context: Context, request: PushTelemetryRequest) -> PushTelemetryResponse:
    telemetry = context.engines.telemetry
    client = telemetry.admit_push(
        request.client_instance_id,
        identity_of(context),
        request.subscription_id,
        request.terminating,
        request.compression_type,
        len(request.metrics),
        context.engines.config.integer("telemetry.max.bytes"),
    )
    if request.metrics:
        await telemetry.take_push(client, request.compression_type, request.metrics)
    return PushTelemetryResponse()
