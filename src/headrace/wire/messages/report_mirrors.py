"""ReportMirrors (API key 20002), Headrace's own: Kafka has no such request. Documents are JSON; `server/api/report_mirrors.py` says what is in them."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class ReportMirrorsRequest(Request["ReportMirrorsResponse"]):
    __slots__ = ("document",)
    API_KEY = 20002
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (Field("document", "string", (0, ALWAYS), default=""),)

    def __init__(self, document: str = "") -> None:
        self.document = document

    @classmethod
    def reply_type(cls) -> type[ReportMirrorsResponse]:
        return ReportMirrorsResponse


class ReportMirrorsResponse(Response):
    __slots__ = ("document", "error_code", "error_message", "throttle_time_ms")
    API_KEY = 20002
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("document", "string", (0, ALWAYS), default=""),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        document: str = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.document = document
