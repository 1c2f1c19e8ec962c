"""GetTelemetrySubscriptions (API key 71). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Request, Response


class GetTelemetrySubscriptionsRequest(Request["GetTelemetrySubscriptionsResponse"]):
    __slots__ = ("client_instance_id",)
    API_KEY = 71
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (Field("client_instance_id", "uuid", (0, ALWAYS), default=ZERO_UUID),)

    def __init__(
        self,
        client_instance_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.client_instance_id = client_instance_id

    @classmethod
    def reply_type(cls) -> type[GetTelemetrySubscriptionsResponse]:
        return GetTelemetrySubscriptionsResponse


class GetTelemetrySubscriptionsResponse(Response):
    __slots__ = (
        "accepted_compression_types",
        "client_instance_id",
        "delta_temporality",
        "error_code",
        "push_interval_ms",
        "requested_metrics",
        "subscription_id",
        "telemetry_max_bytes",
        "throttle_time_ms",
    )
    API_KEY = 71
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("client_instance_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("subscription_id", "int32", (0, ALWAYS), default=0),
        Field("accepted_compression_types", "int8", (0, ALWAYS), array=True),
        Field("push_interval_ms", "int32", (0, ALWAYS), default=0),
        Field("telemetry_max_bytes", "int32", (0, ALWAYS), default=0),
        Field("delta_temporality", "bool", (0, ALWAYS), default=False),
        Field("requested_metrics", "string", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: uuid.UUID = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] | None = None,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = (
            [] if accepted_compression_types is None else accepted_compression_types
        )
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is None else requested_metrics
