"""What `__consumer_offsets` keeps of a consumer group (KIP-848): each fact of it in a record of its own."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message

_EVERY = (0, ALWAYS)


class ConsumerGroupMetadataKey(Message):
    __slots__ = ("group_id",)
    FIELDS = (Field("group_id", "string"),)

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


class ConsumerGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash")
    FLEXIBLE = 0
    FIELDS = (
        Field("epoch", "int32"),
        Field("metadata_hash", "int64", tag=0, default=0),
    )

    def __init__(self, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


class ConsumerGroupPartitionMetadataKey(Message):
    """Written by Kafka up to 4.0 and removed since; read so that it can be removed."""

    __slots__ = ("group_id",)
    FIELDS = (Field("group_id", "string"),)

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


class ConsumerGroupPartitionMetadataValue(Message):
    """Only its presence matters: what it holds has been replaced by the metadata hash."""

    __slots__ = ()
    FLEXIBLE = ALWAYS


class ConsumerGroupMemberMetadataKey(Message):
    __slots__ = ("group_id", "member_id")
    FIELDS = (Field("group_id", "string"), Field("member_id", "string"))

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


class ClassicProtocol(Message):
    __slots__ = ("metadata", "name")
    FLEXIBLE = 0
    FIELDS = (Field("name", "string"), Field("metadata", "bytes"))

    def __init__(self, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Message):
    __slots__ = ("session_timeout_ms", "supported_protocols")
    FLEXIBLE = 0
    FIELDS = (
        Field("session_timeout_ms", "int32"),
        Field("supported_protocols", "struct", array=True, struct=ClassicProtocol),
    )

    def __init__(
        self, session_timeout_ms: int = 0, supported_protocols: list[ClassicProtocol] | None = None
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is None else supported_protocols


class ConsumerGroupMemberMetadataValue(Message):
    __slots__ = (
        "classic_member_metadata",
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("instance_id", "string", nullable=_EVERY),
        Field("rack_id", "string", nullable=_EVERY),
        Field("client_id", "string"),
        Field("client_host", "string"),
        Field("subscribed_topic_names", "string", array=True, nullable=_EVERY),
        Field("subscribed_topic_regex", "string", nullable=_EVERY),
        Field("rebalance_timeout_ms", "int32", default=-1),
        Field("server_assignor", "string", nullable=_EVERY),
        Field("classic_member_metadata", "struct", nullable=_EVERY, tag=0, struct=ClassicMemberMetadata),
    )

    def __init__(
        self,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        classic_member_metadata: ClassicMemberMetadata | None = None,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = classic_member_metadata


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)
    FIELDS = (Field("group_id", "string"),)

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch",)
    FLEXIBLE = 0
    FIELDS = (Field("assignment_epoch", "int32"),)

    def __init__(self, assignment_epoch: int = 0) -> None:
        self.assignment_epoch = assignment_epoch


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", default=ZERO_UUID),
        Field("partitions", "int32", array=True),
    )

    def __init__(self, topic_id: uuid.UUID = ZERO_UUID, partitions: list[int] | None = None) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ConsumerGroupTargetAssignmentMemberKey(Message):
    __slots__ = ("group_id", "member_id")
    FIELDS = (Field("group_id", "string"), Field("member_id", "string"))

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


class ConsumerGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions",)
    FLEXIBLE = 0
    FIELDS = (Field("topic_partitions", "struct", array=True, struct=TopicPartitions),)

    def __init__(self, topic_partitions: list[TopicPartitions] | None = None) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    __slots__ = ("group_id", "member_id")
    FIELDS = (Field("group_id", "string"), Field("member_id", "string"))

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    __slots__ = (
        "assigned_partitions",
        "member_epoch",
        "partitions_pending_revocation",
        "previous_member_epoch",
        "state",
    )
    FLEXIBLE = 0
    FIELDS = (
        Field("member_epoch", "int32"),
        Field("previous_member_epoch", "int32"),
        Field("state", "int8"),
        Field("assigned_partitions", "struct", array=True, struct=TopicPartitions),
        Field("partitions_pending_revocation", "struct", array=True, struct=TopicPartitions),
    )

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] | None = None,
        partitions_pending_revocation: list[TopicPartitions] | None = None,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is None else assigned_partitions
        self.partitions_pending_revocation = (
            [] if partitions_pending_revocation is None else partitions_pending_revocation
        )


class ConsumerGroupRegularExpressionKey(Message):
    __slots__ = ("group_id", "regular_expression")
    FIELDS = (
        Field("group_id", "string"),
        Field("regular_expression", "string"),
    )

    def __init__(self, group_id: str = "", regular_expression: str = "") -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression


class ConsumerGroupRegularExpressionValue(Message):
    __slots__ = ("timestamp", "topics", "version")
    FLEXIBLE = 0
    FIELDS = (
        Field("topics", "string", array=True),
        Field("version", "int64"),
        Field("timestamp", "int64"),
    )

    def __init__(self, topics: list[str] | None = None, version: int = 0, timestamp: int = 0) -> None:
        self.topics = [] if topics is None else topics
        self.version = version
        self.timestamp = timestamp
