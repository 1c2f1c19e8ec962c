"""AlterReplicaLogDirs (API key 34). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class AlterReplicaLogDirTopic(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 2
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("partitions", "int32", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class AlterReplicaLogDir(Message):
    __slots__ = ("path", "topics")
    FLEXIBLE = 2
    FIELDS = (
        Field("path", "string", (1, ALWAYS), default=""),
        Field("topics", "struct", (1, ALWAYS), array=True, struct=AlterReplicaLogDirTopic),
    )

    def __init__(
        self,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] | None = None,
    ) -> None:
        self.path = path
        self.topics = [] if topics is None else topics


class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"]):
    __slots__ = ("dirs",)
    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE = 2
    FIELDS = (Field("dirs", "struct", (1, ALWAYS), array=True, struct=AlterReplicaLogDir),)

    def __init__(
        self,
        dirs: list[AlterReplicaLogDir] | None = None,
    ) -> None:
        self.dirs = [] if dirs is None else dirs

    @classmethod
    def reply_type(cls) -> type[AlterReplicaLogDirsResponse]:
        return AlterReplicaLogDirsResponse


class AlterReplicaLogDirPartitionResult(Message):
    __slots__ = ("error_code", "partition_index")
    FLEXIBLE = 2
    FIELDS = (
        Field("partition_index", "int32", (1, ALWAYS), default=0),
        Field("error_code", "int16", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class AlterReplicaLogDirTopicResult(Message):
    __slots__ = ("partitions", "topic_name")
    FLEXIBLE = 2
    FIELDS = (
        Field("topic_name", "string", (1, ALWAYS), default=""),
        Field("partitions", "struct", (1, ALWAYS), array=True, struct=AlterReplicaLogDirPartitionResult),
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class AlterReplicaLogDirsResponse(Response):
    __slots__ = ("results", "throttle_time_ms")
    API_KEY = 34
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("results", "struct", (1, ALWAYS), array=True, struct=AlterReplicaLogDirTopicResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results
