"""SaslHandshake (API key 17). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class SaslHandshakeRequest(Request["SaslHandshakeResponse"]):
    __slots__ = ("mechanism",)
    API_KEY = 17
    VERSIONS = (0, 1)
    FIELDS = (Field("mechanism", "string", (0, ALWAYS), default=""),)

    def __init__(
        self,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism

    @classmethod
    def reply_type(cls) -> type[SaslHandshakeResponse]:
        return SaslHandshakeResponse


class SaslHandshakeResponse(Response):
    __slots__ = ("error_code", "mechanisms")
    API_KEY = 17
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("mechanisms", "string", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        mechanisms: list[str] | None = None,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is None else mechanisms
