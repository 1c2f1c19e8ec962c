"""GetTelemetrySubscriptions (KIP-714): which metrics this client is to push, and how often.

- A client without an id gets one; it keeps it with every broker.
- Nobody needs a permission: which clients are asked is decided by those who may alter the cluster's settings.
- Counters are asked for as cumulative values, where Kafka asks for deltas: the last push is then all that has to be kept.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.telemetry.subscriptions import ClientIdentity
from headrace.wire.compression import Codec
from headrace.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

ACCEPTED = [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]
"""Best first; a push without compression is taken, too."""

LONGEST_NAME = 256
"""What is kept of a client's name: every client that is remembered has one, and on a page every series of it."""


def handle(context: Context, request: GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse:
    engines = context.engines
    client = engines.telemetry.tell_what_to_push(request.client_instance_id, identity_of(context))
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client.id,
        subscription_id=client.asked.id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=client.asked.interval_ms,
        telemetry_max_bytes=engines.config.integer("telemetry.max.bytes"),
        delta_temporality=False,
        requested_metrics=list(client.asked.metrics),
    )


def identity_of(context: Context) -> ClientIdentity:
    connection = context.connection
    return ClientIdentity(
        (context.client_id or "")[:LONGEST_NAME],
        connection.software_name[:LONGEST_NAME],
        connection.software_version[:LONGEST_NAME],
        connection.peer_host,
        connection.peer_port,
    )
