"""ConsumerProtocolSubscription. Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message


class TopicPartition(Message):
    __slots__ = ("partitions", "topic")
    FIELDS = (
        Field("topic", "string", (1, ALWAYS), default=""),
        Field("partitions", "int32", (1, ALWAYS), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class ConsumerProtocolSubscription(Message):
    __slots__ = ("generation_id", "owned_partitions", "rack_id", "topics", "user_data")
    FIELDS = (
        Field("topics", "string", (0, ALWAYS), array=True),
        Field("user_data", "bytes", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("owned_partitions", "struct", (1, ALWAYS), array=True, struct=TopicPartition),
        Field("generation_id", "int32", (2, ALWAYS), default=-1),
        Field("rack_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
    )

    def __init__(
        self,
        topics: list[str] | None = None,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] | None = None,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is None else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
