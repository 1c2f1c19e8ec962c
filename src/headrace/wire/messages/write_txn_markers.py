"""WriteTxnMarkers (API key 27). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class WritableTxnMarkerTopic(Message):
    __slots__ = ("name", "partition_indexes")
    FLEXIBLE = 1
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("partition_indexes", "int32", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes


class WritableTxnMarker(Message):
    __slots__ = (
        "coordinator_epoch",
        "producer_epoch",
        "producer_id",
        "topics",
        "transaction_result",
        "transaction_version",
    )
    FLEXIBLE = 1
    FIELDS = (
        Field("producer_id", "int64", (1, ALWAYS), default=0),
        Field("producer_epoch", "int16", (1, ALWAYS), default=0),
        Field("transaction_result", "bool", (1, ALWAYS), default=False),
        Field("topics", "struct", (1, ALWAYS), array=True, struct=WritableTxnMarkerTopic),
        Field("coordinator_epoch", "int32", (1, ALWAYS), default=0),
        Field("transaction_version", "int8", (2, ALWAYS), default=0),
    )

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] | None = None,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is None else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"]):
    __slots__ = ("markers",)
    API_KEY = 27
    VERSIONS = (1, 2)
    FLEXIBLE = 1
    FIELDS = (Field("markers", "struct", (1, ALWAYS), array=True, struct=WritableTxnMarker),)

    def __init__(
        self,
        markers: list[WritableTxnMarker] | None = None,
    ) -> None:
        self.markers = [] if markers is None else markers

    @classmethod
    def reply_type(cls) -> type[WriteTxnMarkersResponse]:
        return WriteTxnMarkersResponse


class WritableTxnMarkerPartitionResult(Message):
    __slots__ = ("error_code", "partition_index")
    FLEXIBLE = 1
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


class WritableTxnMarkerTopicResult(Message):
    __slots__ = ("name", "partitions")
    FLEXIBLE = 1
    FIELDS = (
        Field("name", "string", (1, ALWAYS), default=""),
        Field("partitions", "struct", (1, ALWAYS), array=True, struct=WritableTxnMarkerPartitionResult),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class WritableTxnMarkerResult(Message):
    __slots__ = ("producer_id", "topics")
    FLEXIBLE = 1
    FIELDS = (
        Field("producer_id", "int64", (1, ALWAYS), default=0),
        Field("topics", "struct", (1, ALWAYS), array=True, struct=WritableTxnMarkerTopicResult),
    )

    def __init__(
        self,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is None else topics


class WriteTxnMarkersResponse(Response):
    __slots__ = ("markers",)
    API_KEY = 27
    FLEXIBLE = 1
    FIELDS = (Field("markers", "struct", (1, ALWAYS), array=True, struct=WritableTxnMarkerResult),)

    def __init__(
        self,
        markers: list[WritableTxnMarkerResult] | None = None,
    ) -> None:
        self.markers = [] if markers is None else markers
