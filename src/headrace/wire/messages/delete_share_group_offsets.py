"""DeleteShareGroupOffsets (API key 92). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class DeleteShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name",)
    FLEXIBLE = 0
    FIELDS = (Field("topic_name", "string", (0, ALWAYS), default=""),)

    def __init__(
        self,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name


class DeleteShareGroupOffsetsRequest(Request["DeleteShareGroupOffsetsResponse"]):
    __slots__ = ("group_id", "topics")
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("topics", "struct", (0, ALWAYS), array=True, struct=DeleteShareGroupOffsetsRequestTopic),
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[DeleteShareGroupOffsetsResponse]:
        return DeleteShareGroupOffsetsResponse


class DeleteShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("error_code", "error_message", "topic_id", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_name", "string", (0, ALWAYS), default=""),
        Field("topic_id", "uuid", (0, ALWAYS), default=ZERO_UUID),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteShareGroupOffsetsResponse(Response):
    __slots__ = ("error_code", "error_message", "responses", "throttle_time_ms")
    API_KEY = 92
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("responses", "struct", (0, ALWAYS), array=True, struct=DeleteShareGroupOffsetsResponseTopic),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses
