"""DeleteTopics (API key 20). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class DeleteTopicState(Message):
    __slots__ = ("name", "topic_id")
    FLEXIBLE = 6
    FIELDS = (
        Field("name", "string", (6, ALWAYS), nullable=(6, ALWAYS)),
        Field("topic_id", "uuid", (6, ALWAYS), default=ZERO_UUID),
    )

    def __init__(
        self,
        name: str | None = None,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Request["DeleteTopicsResponse"]):
    __slots__ = ("timeout_ms", "topic_names", "topics")
    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE = 4
    FIELDS = (
        Field("topics", "struct", (6, ALWAYS), array=True, struct=DeleteTopicState),
        Field("topic_names", "string", (1, 5), array=True),
        Field("timeout_ms", "int32", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        topic_names: list[str] | None = None,
        topics: list[DeleteTopicState] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topic_names = [] if topic_names is None else topic_names
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms

    @classmethod
    def reply_type(cls) -> type[DeleteTopicsResponse]:
        return DeleteTopicsResponse


class DeletableTopicResult(Message):
    __slots__ = ("error_code", "error_message", "name", "topic_id")
    FLEXIBLE = 4
    FIELDS = (
        Field("name", "string", (1, ALWAYS), nullable=(6, ALWAYS), default=""),
        Field("topic_id", "uuid", (6, ALWAYS), default=ZERO_UUID),
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("error_message", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
    )

    def __init__(
        self,
        name: str | None = "",
        topic_id: uuid.UUID = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Response):
    __slots__ = ("responses", "throttle_time_ms")
    API_KEY = 20
    FLEXIBLE = 4
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("responses", "struct", (1, ALWAYS), array=True, struct=DeletableTopicResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is None else responses
