"""AddOffsetsToTxn (API key 25). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"]):
    __slots__ = ("group_id", "producer_epoch", "producer_id", "transactional_id")
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE = 3
    FIELDS = (
        Field("transactional_id", "string", (0, ALWAYS), default=""),
        Field("producer_id", "int64", (0, ALWAYS), default=0),
        Field("producer_epoch", "int16", (0, ALWAYS), default=0),
        Field("group_id", "string", (0, ALWAYS), default=""),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id

    @classmethod
    def reply_type(cls) -> type[AddOffsetsToTxnResponse]:
        return AddOffsetsToTxnResponse


class AddOffsetsToTxnResponse(Response):
    __slots__ = ("error_code", "throttle_time_ms")
    API_KEY = 25
    FLEXIBLE = 3
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
