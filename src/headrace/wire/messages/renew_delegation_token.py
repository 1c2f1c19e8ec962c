"""RenewDelegationToken (API key 39). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"]):
    __slots__ = ("hmac", "renew_period_ms")
    API_KEY = 39
    VERSIONS = (1, 2)
    FLEXIBLE = 2
    FIELDS = (
        Field("hmac", "bytes", (1, ALWAYS), default=b""),
        Field("renew_period_ms", "int64", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms

    @classmethod
    def reply_type(cls) -> type[RenewDelegationTokenResponse]:
        return RenewDelegationTokenResponse


class RenewDelegationTokenResponse(Response):
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    API_KEY = 39
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("expiry_timestamp_ms", "int64", (1, ALWAYS), default=0),
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
