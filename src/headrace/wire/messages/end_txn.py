"""EndTxn (API key 26). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class EndTxnRequest(Request["EndTxnResponse"]):
    __slots__ = ("committed", "producer_epoch", "producer_id", "transactional_id")
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE = 3
    FIELDS = (
        Field("transactional_id", "string", (0, ALWAYS), default=""),
        Field("producer_id", "int64", (0, ALWAYS), default=0),
        Field("producer_epoch", "int16", (0, ALWAYS), default=0),
        Field("committed", "bool", (0, ALWAYS), default=False),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed

    @classmethod
    def reply_type(cls) -> type[EndTxnResponse]:
        return EndTxnResponse


class EndTxnResponse(Response):
    __slots__ = ("error_code", "producer_epoch", "producer_id", "throttle_time_ms")
    API_KEY = 26
    FLEXIBLE = 3
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("producer_id", "int64", (5, ALWAYS), default=-1),
        Field("producer_epoch", "int16", (5, ALWAYS), default=-1),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
