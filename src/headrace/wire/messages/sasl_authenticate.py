"""SaslAuthenticate (API key 36). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"]):
    __slots__ = ("auth_bytes",)
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE = 2
    FIELDS = (Field("auth_bytes", "bytes", (0, ALWAYS), default=b""),)

    def __init__(
        self,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes

    @classmethod
    def reply_type(cls) -> type[SaslAuthenticateResponse]:
        return SaslAuthenticateResponse


class SaslAuthenticateResponse(Response):
    __slots__ = ("auth_bytes", "error_code", "error_message", "session_lifetime_ms")
    API_KEY = 36
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("auth_bytes", "bytes", (0, ALWAYS), default=b""),
        Field("session_lifetime_ms", "int64", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
