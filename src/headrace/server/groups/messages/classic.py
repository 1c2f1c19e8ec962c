"""What `__consumer_offsets` keeps of a classic group."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message

_EVERY = (0, ALWAYS)


class GroupMetadataKey(Message):
    __slots__ = ("group",)
    FIELDS = (Field("group", "string"),)

    def __init__(self, group: str = "") -> None:
        self.group = group


class MemberMetadata(Message):
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "member_id",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
    )
    FLEXIBLE = 4
    FIELDS = (
        Field("member_id", "string"),
        Field("group_instance_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
        Field("client_id", "string"),
        Field("client_host", "string"),
        Field("rebalance_timeout", "int32", (1, ALWAYS), default=-1),
        Field("session_timeout", "int32"),
        Field("subscription", "bytes"),
        Field("assignment", "bytes"),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment


class GroupMetadataValue(Message):
    __slots__ = ("current_state_timestamp", "generation", "leader", "members", "protocol", "protocol_type")
    FLEXIBLE = 4
    FIELDS = (
        Field("protocol_type", "string"),
        Field("generation", "int32"),
        Field("protocol", "string", nullable=_EVERY),
        Field("leader", "string", nullable=_EVERY),
        Field("current_state_timestamp", "int64", (2, ALWAYS), default=-1),
        Field("members", "struct", array=True, struct=MemberMetadata),
    )

    def __init__(
        self,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = None,
        leader: str | None = None,
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] | None = None,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is None else members
