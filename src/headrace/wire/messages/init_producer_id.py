"""InitProducerId (API key 22). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class InitProducerIdRequest(Request["InitProducerIdResponse"]):
    __slots__ = ("producer_epoch", "producer_id", "transaction_timeout_ms", "transactional_id")
    API_KEY = 22
    VERSIONS = (0, 5)
    FLEXIBLE = 2
    FIELDS = (
        Field("transactional_id", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("transaction_timeout_ms", "int32", (0, ALWAYS), default=0),
        Field("producer_id", "int64", (3, ALWAYS), default=-1),
        Field("producer_epoch", "int16", (3, ALWAYS), default=-1),
    )

    def __init__(
        self,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    @classmethod
    def reply_type(cls) -> type[InitProducerIdResponse]:
        return InitProducerIdResponse


class InitProducerIdResponse(Response):
    __slots__ = ("error_code", "producer_epoch", "producer_id", "throttle_time_ms")
    API_KEY = 22
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("producer_id", "int64", (0, ALWAYS), default=-1),
        Field("producer_epoch", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
