"""ConsumerProtocolAssignment. Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message


class TopicPartition(Message):
    __slots__ = ("partitions", "topic")
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


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data")
    FIELDS = (
        Field("assigned_partitions", "struct", (0, ALWAYS), array=True, struct=TopicPartition),
        Field("user_data", "bytes", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        assigned_partitions: list[TopicPartition] | None = None,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is None else assigned_partitions
        self.user_data = user_data
