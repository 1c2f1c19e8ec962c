"""UnregisterBroker (API key 64). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class UnregisterBrokerRequest(Request["UnregisterBrokerResponse"]):
    __slots__ = ("broker_id",)
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (Field("broker_id", "int32", (0, ALWAYS), default=0),)

    def __init__(
        self,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id

    @classmethod
    def reply_type(cls) -> type[UnregisterBrokerResponse]:
        return UnregisterBrokerResponse


class UnregisterBrokerResponse(Response):
    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    API_KEY = 64
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
