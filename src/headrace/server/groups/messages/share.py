"""What `__consumer_offsets` keeps of a share group (KIP-932): each fact of it in a record of its own."""

from __future__ import annotations

import uuid

from headrace.server.groups.messages.consumer import TopicPartitions
from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message

_EVERY = (0, ALWAYS)


class ShareGroupMemberMetadataKey(Message):
    __slots__ = ("group_id", "member_id")
    FIELDS = (Field("group_id", "string"), Field("member_id", "string"))

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


class ShareGroupMemberMetadataValue(Message):
    __slots__ = ("client_host", "client_id", "rack_id", "subscribed_topic_names")
    FLEXIBLE = 0
    FIELDS = (
        Field("rack_id", "string", nullable=_EVERY),
        Field("client_id", "string"),
        Field("client_host", "string"),
        Field("subscribed_topic_names", "string", array=True),
    )

    def __init__(
        self,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is None else subscribed_topic_names


class ShareGroupMetadataKey(Message):
    __slots__ = ("group_id",)
    FIELDS = (Field("group_id", "string"),)

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


class ShareGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash")
    FLEXIBLE = 0
    FIELDS = (Field("epoch", "int32"), Field("metadata_hash", "int64"))

    def __init__(self, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


class ShareGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)
    FIELDS = (Field("group_id", "string"),)

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


class ShareGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp")
    FLEXIBLE = 0
    FIELDS = (
        Field("assignment_epoch", "int32"),
        Field("assignment_timestamp", "int64", _EVERY, tag=0),
    )

    def __init__(self, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp


class ShareGroupTargetAssignmentMemberKey(Message):
    __slots__ = ("group_id", "member_id")
    FIELDS = (Field("group_id", "string"), Field("member_id", "string"))

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


class ShareGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions",)
    FLEXIBLE = 0
    FIELDS = (Field("topic_partitions", "struct", array=True, struct=TopicPartitions),)

    def __init__(self, topic_partitions: list[TopicPartitions] | None = None) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions


class ShareGroupCurrentMemberAssignmentKey(Message):
    __slots__ = ("group_id", "member_id")
    FIELDS = (Field("group_id", "string"), Field("member_id", "string"))

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


class ShareGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("assigned_partitions", "member_epoch", "previous_member_epoch", "state")
    FLEXIBLE = 0
    FIELDS = (
        Field("member_epoch", "int32"),
        Field("previous_member_epoch", "int32"),
        Field("state", "int8"),
        Field("assigned_partitions", "struct", array=True, struct=TopicPartitions),
    )

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is None else assigned_partitions


class ShareGroupStatePartitionMetadataKey(Message):
    __slots__ = ("group_id",)
    FIELDS = (Field("group_id", "string"),)

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


class TopicPartitionsInfo(Message):
    __slots__ = ("partitions", "topic_id", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", default=ZERO_UUID),
        Field("topic_name", "string"),
        Field("partitions", "int32", array=True),
    )

    def __init__(
        self, topic_id: uuid.UUID = ZERO_UUID, topic_name: str = "", partitions: list[int] | None = None
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class TopicInfo(Message):
    __slots__ = ("topic_id", "topic_name")
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", default=ZERO_UUID),
        Field("topic_name", "string"),
    )

    def __init__(self, topic_id: uuid.UUID = ZERO_UUID, topic_name: str = "") -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name


class ShareGroupStatePartitionMetadataValue(Message):
    __slots__ = ("deleting_topics", "initialized_topics", "initializing_topics")
    FLEXIBLE = 0
    FIELDS = (
        Field("initializing_topics", "struct", array=True, struct=TopicPartitionsInfo),
        Field("initialized_topics", "struct", array=True, struct=TopicPartitionsInfo),
        Field("deleting_topics", "struct", array=True, struct=TopicInfo),
    )

    def __init__(
        self,
        initializing_topics: list[TopicPartitionsInfo] | None = None,
        initialized_topics: list[TopicPartitionsInfo] | None = None,
        deleting_topics: list[TopicInfo] | None = None,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is None else initializing_topics
        self.initialized_topics = [] if initialized_topics is None else initialized_topics
        self.deleting_topics = [] if deleting_topics is None else deleting_topics
