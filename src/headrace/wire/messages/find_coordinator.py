"""FindCoordinator (API key 10). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class FindCoordinatorRequest(Request["FindCoordinatorResponse"]):
    __slots__ = ("coordinator_keys", "key", "key_type")
    API_KEY = 10
    VERSIONS = (0, 6)
    FLEXIBLE = 3
    FIELDS = (
        Field("key", "string", (0, 3), default=""),
        Field("key_type", "int8", (1, ALWAYS), default=0),
        Field("coordinator_keys", "string", (4, ALWAYS), array=True),
    )

    def __init__(
        self,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] | None = None,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is None else coordinator_keys

    @classmethod
    def reply_type(cls) -> type[FindCoordinatorResponse]:
        return FindCoordinatorResponse


class Coordinator(Message):
    __slots__ = ("error_code", "error_message", "host", "key", "node_id", "port")
    FLEXIBLE = 4
    FIELDS = (
        Field("key", "string", (4, ALWAYS), default=""),
        Field("node_id", "int32", (4, ALWAYS), default=0),
        Field("host", "string", (4, ALWAYS), default=""),
        Field("port", "int32", (4, ALWAYS), default=0),
        Field("error_code", "int16", (4, ALWAYS), default=0),
        Field("error_message", "string", (4, ALWAYS), nullable=(4, ALWAYS), default=""),
    )

    def __init__(
        self,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Response):
    __slots__ = ("coordinators", "error_code", "error_message", "host", "node_id", "port", "throttle_time_ms")
    API_KEY = 10
    FLEXIBLE = 3
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (0, 3), default=0),
        Field("error_message", "string", (1, 3), nullable=(1, 3), default=""),
        Field("node_id", "int32", (0, 3), default=0),
        Field("host", "string", (0, 3), default=""),
        Field("port", "int32", (0, 3), default=0),
        Field("coordinators", "struct", (4, ALWAYS), array=True, struct=Coordinator),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is None else coordinators
