"""What `__consumer_offsets` keeps of an offset: its key and its value."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message


class OffsetCommitKey(Message):
    __slots__ = ("group", "partition", "topic")
    FIELDS = (
        Field("group", "string"),
        Field("topic", "string"),
        Field("partition", "int32"),
    )

    def __init__(self, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


class OffsetCommitValue(Message):
    __slots__ = ("commit_timestamp", "expire_timestamp", "leader_epoch", "metadata", "offset", "topic_id")
    FLEXIBLE = 4
    FIELDS = (
        Field("offset", "int64"),
        Field("leader_epoch", "int32", (3, ALWAYS), default=-1),
        Field("metadata", "string", default=""),
        Field("commit_timestamp", "int64"),
        Field("expire_timestamp", "int64", (1, 1), default=-1),
        Field("topic_id", "uuid", (4, ALWAYS), tag=0, default=ZERO_UUID),
    )

    def __init__(
        self,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: uuid.UUID = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
