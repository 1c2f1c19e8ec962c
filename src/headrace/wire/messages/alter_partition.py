"""AlterPartition (API key 56). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

import uuid

from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message, Request, Response


class BrokerState(Message):
    __slots__ = ("broker_epoch", "broker_id")
    FLEXIBLE = 3
    FIELDS = (
        Field("broker_id", "int32", (3, ALWAYS), default=0),
        Field("broker_epoch", "int64", (3, ALWAYS), default=-1),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class PartitionData(Message):
    __slots__ = (
        "leader_epoch",
        "leader_recovery_state",
        "new_isr",
        "new_isr_with_epochs",
        "partition_epoch",
        "partition_index",
    )
    FLEXIBLE = 2
    FIELDS = (
        Field("partition_index", "int32", (2, ALWAYS), default=0),
        Field("leader_epoch", "int32", (2, ALWAYS), default=0),
        Field("new_isr", "int32", (2, 2), array=True),
        Field("new_isr_with_epochs", "struct", (3, ALWAYS), array=True, struct=BrokerState),
        Field("leader_recovery_state", "int8", (2, ALWAYS), default=0),
        Field("partition_epoch", "int32", (2, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] | None = None,
        new_isr_with_epochs: list[BrokerState] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr = [] if new_isr is None else new_isr
        self.new_isr_with_epochs = [] if new_isr_with_epochs is None else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class TopicData(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 2
    FIELDS = (
        Field("topic_id", "uuid", (2, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (2, ALWAYS), array=True, struct=PartitionData),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class AlterPartitionRequest(Request["AlterPartitionResponse"]):
    __slots__ = ("broker_epoch", "broker_id", "topics")
    API_KEY = 56
    VERSIONS = (2, 3)
    FLEXIBLE = 2
    FIELDS = (
        Field("broker_id", "int32", (2, ALWAYS), default=0),
        Field("broker_epoch", "int64", (2, ALWAYS), default=-1),
        Field("topics", "struct", (2, ALWAYS), array=True, struct=TopicData),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[TopicData] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is None else topics

    @classmethod
    def reply_type(cls) -> type[AlterPartitionResponse]:
        return AlterPartitionResponse


class ResponsePartitionData(Message):
    __slots__ = (
        "error_code",
        "isr",
        "leader_epoch",
        "leader_id",
        "leader_recovery_state",
        "partition_epoch",
        "partition_index",
    )
    FLEXIBLE = 2
    FIELDS = (
        Field("partition_index", "int32", (2, ALWAYS), default=0),
        Field("error_code", "int16", (2, ALWAYS), default=0),
        Field("leader_id", "int32", (2, ALWAYS), default=0),
        Field("leader_epoch", "int32", (2, ALWAYS), default=0),
        Field("isr", "int32", (2, ALWAYS), array=True),
        Field("leader_recovery_state", "int8", (2, ALWAYS), default=0),
        Field("partition_epoch", "int32", (2, ALWAYS), default=0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is None else isr
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class ResponseTopicData(Message):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE = 2
    FIELDS = (
        Field("topic_id", "uuid", (2, ALWAYS), default=ZERO_UUID),
        Field("partitions", "struct", (2, ALWAYS), array=True, struct=ResponsePartitionData),
    )

    def __init__(
        self,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[ResponsePartitionData] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class AlterPartitionResponse(Response):
    __slots__ = ("error_code", "throttle_time_ms", "topics")
    API_KEY = 56
    FLEXIBLE = 2
    FIELDS = (
        Field("throttle_time_ms", "int32", (2, ALWAYS), default=0),
        Field("error_code", "int16", (2, ALWAYS), default=0),
        Field("topics", "struct", (2, ALWAYS), array=True, struct=ResponseTopicData),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[ResponseTopicData] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is None else topics
