"""AllocateProducerIds (API key 67). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Request, Response


class AllocateProducerIdsRequest(Request["AllocateProducerIdsResponse"]):
    __slots__ = ("broker_epoch", "broker_id")
    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("broker_id", "int32", (0, ALWAYS), default=0),
        Field("broker_epoch", "int64", (0, ALWAYS), default=-1),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch

    @classmethod
    def reply_type(cls) -> type[AllocateProducerIdsResponse]:
        return AllocateProducerIdsResponse


class AllocateProducerIdsResponse(Response):
    __slots__ = ("error_code", "producer_id_len", "producer_id_start", "throttle_time_ms")
    API_KEY = 67
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("producer_id_start", "int64", (0, ALWAYS), default=0),
        Field("producer_id_len", "int32", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
