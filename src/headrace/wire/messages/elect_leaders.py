"""ElectLeaders (API key 43). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic")
    FLEXIBLE = 2
    FIELDS = (
        Field("topic", "string", (0, ALWAYS), default=""),
        Field("partitions", "int32", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class ElectLeadersRequest(Request["ElectLeadersResponse"]):
    __slots__ = ("election_type", "timeout_ms", "topic_partitions")
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE = 2
    FIELDS = (
        Field("election_type", "int8", (1, ALWAYS), default=0),
        Field(
            "topic_partitions",
            "struct",
            (0, ALWAYS),
            array=True,
            nullable=(0, ALWAYS),
            struct=TopicPartitions,
        ),
        Field("timeout_ms", "int32", (0, ALWAYS), default=60000),
    )

    def __init__(
        self,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = None,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = topic_partitions
        self.timeout_ms = timeout_ms

    @classmethod
    def reply_type(cls) -> type[ElectLeadersResponse]:
        return ElectLeadersResponse


class PartitionResult(Message):
    __slots__ = ("error_code", "error_message", "partition_id")
    FLEXIBLE = 2
    FIELDS = (
        Field("partition_id", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Message):
    __slots__ = ("partition_result", "topic")
    FLEXIBLE = 2
    FIELDS = (
        Field("topic", "string", (0, ALWAYS), default=""),
        Field("partition_result", "struct", (0, ALWAYS), array=True, struct=PartitionResult),
    )

    def __init__(
        self,
        topic: str = "",
        partition_result: list[PartitionResult] | None = None,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is None else partition_result


class ElectLeadersResponse(Response):
    __slots__ = ("error_code", "replica_election_results", "throttle_time_ms")
    API_KEY = 43
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("replica_election_results", "struct", (0, ALWAYS), array=True, struct=ReplicaElectionResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is None else replica_election_results
