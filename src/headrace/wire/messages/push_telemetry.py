"""PushTelemetry (API key 72). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Request, Response


class PushTelemetryRequest(Request["PushTelemetryResponse"]):
    __slots__ = ("client_instance_id", "compression_type", "metrics", "subscription_id", "terminating")
    API_KEY = 72
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("client_instance_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("subscription_id", "int32", (0, ALWAYS), default=0),
        Field("terminating", "bool", (0, ALWAYS), default=False),
        Field("compression_type", "int8", (0, ALWAYS), default=0),
        Field("metrics", "bytes", (0, ALWAYS), default=b""),
    )

    def __init__(
        self,
        client_instance_id: uuid.UUID = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics

    @classmethod
    def reply_type(cls) -> type[PushTelemetryResponse]:
        return PushTelemetryResponse


class PushTelemetryResponse(Response):
    __slots__ = ("error_code", "throttle_time_ms")
    API_KEY = 72
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
