"""The records of `__consumer_offsets`, in Kafka's own formats and versions.

A key starts with two bytes that say what kind of record it is, a value with two bytes that say which version
it has. Reading accepts every version Kafka 4.1 reads; writing uses the one Kafka 4.1 writes. Records of share groups are written
from `share.version` 1 on.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from headrace.wire.codec import WireError, decode, encode
from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message

_INT16 = struct.Struct(">h")
_EVERY = (0, ALWAYS)


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string"),
        Field("topic", "string"),
        Field("partition", "int32"),
    )
    group: str = ""
    topic: str = ""
    partition: int = 0


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitValue(Message):
    FLEXIBLE: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("offset", "int64"),
        Field("leader_epoch", "int32", (3, ALWAYS), default=-1),
        Field("metadata", "string", default=""),
        Field("commit_timestamp", "int64"),
        Field("expire_timestamp", "int64", (1, 1), default=-1),
        Field("topic_id", "uuid", (4, ALWAYS), tag=0, default=ZERO_UUID),
    )
    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: uuid.UUID = ZERO_UUID


@dataclass(slots=True, eq=False, repr=False)
class GroupMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group", "string"),)
    group: str = ""


@dataclass(slots=True, eq=False, repr=False)
class MemberMetadata(Message):
    FLEXIBLE: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string"),
        Field("group_instance_id", "string", (3, ALWAYS), nullable=(3, ALWAYS)),
        Field("client_id", "string"),
        Field("client_host", "string"),
        Field("rebalance_timeout", "int32", (1, ALWAYS), default=-1),
        Field("session_timeout", "int32"),
        Field("subscription", "bytes"),
        Field("assignment", "bytes"),
    )
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


@dataclass(slots=True, eq=False, repr=False)
class GroupMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("protocol_type", "string"),
        Field("generation", "int32"),
        Field("protocol", "string", nullable=_EVERY),
        Field("leader", "string", nullable=_EVERY),
        Field("current_state_timestamp", "int64", (2, ALWAYS), default=-1),
        Field("members", "struct", array=True, struct=MemberMetadata),
    )
    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int = -1
    members: list[MemberMetadata] = field(default_factory=list)


# The consumer protocol (KIP-848) keeps each fact of a group in a record of its own.


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"),)
    group_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32"),
        Field("metadata_hash", "int64", tag=0, default=0),
    )
    epoch: int = 0
    metadata_hash: int = 0


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupPartitionMetadataKey(Message):
    """Written by Kafka up to 4.0 and removed since; read so that it can be removed."""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"),)
    group_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupPartitionMetadataValue(Message):
    """Only its presence matters: what it holds has been replaced by the metadata hash."""

    FLEXIBLE: ClassVar[int] = ALWAYS


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMemberMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"), Field("member_id", "string"))
    group_id: str = ""
    member_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ClassicProtocol(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("name", "string"), Field("metadata", "bytes"))
    name: str = ""
    metadata: bytes = b""


@dataclass(slots=True, eq=False, repr=False)
class ClassicMemberMetadata(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("session_timeout_ms", "int32"),
        Field("supported_protocols", "struct", array=True, struct=ClassicProtocol),
    )
    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMemberMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
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
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] | None = field(default_factory=list)
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"),)
    group_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("assignment_epoch", "int32"),)
    assignment_epoch: int = 0


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitions(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", default=ZERO_UUID),
        Field("partitions", "int32", array=True),
    )
    topic_id: uuid.UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupTargetAssignmentMemberKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"), Field("member_id", "string"))
    group_id: str = ""
    member_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", "struct", array=True, struct=TopicPartitions),
    )
    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"), Field("member_id", "string"))
    group_id: str = ""
    member_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32"),
        Field("previous_member_epoch", "int32"),
        Field("state", "int8"),
        Field("assigned_partitions", "struct", array=True, struct=TopicPartitions),
        Field("partitions_pending_revocation", "struct", array=True, struct=TopicPartitions),
    )
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = field(default_factory=list)
    partitions_pending_revocation: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupRegularExpressionKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string"),
        Field("regular_expression", "string"),
    )
    group_id: str = ""
    regular_expression: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupRegularExpressionValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", array=True),
        Field("version", "int64"),
        Field("timestamp", "int64"),
    )
    topics: list[str] = field(default_factory=list)
    version: int = 0
    timestamp: int = 0


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMemberMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"), Field("member_id", "string"))
    group_id: str = ""
    member_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMemberMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("rack_id", "string", nullable=_EVERY),
        Field("client_id", "string"),
        Field("client_host", "string"),
        Field("subscribed_topic_names", "string", array=True),
    )
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"),)
    group_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("epoch", "int32"), Field("metadata_hash", "int64"))
    epoch: int = 0
    metadata_hash: int = 0


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"),)
    group_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assignment_epoch", "int32"),
        Field("assignment_timestamp", "int64", _EVERY, tag=0),
    )
    assignment_epoch: int = 0
    assignment_timestamp: int = 0


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMemberKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"), Field("member_id", "string"))
    group_id: str = ""
    member_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMemberValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", "struct", array=True, struct=TopicPartitions),
    )
    topic_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupCurrentMemberAssignmentKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"), Field("member_id", "string"))
    group_id: str = ""
    member_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupCurrentMemberAssignmentValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32"),
        Field("previous_member_epoch", "int32"),
        Field("state", "int8"),
        Field("assigned_partitions", "struct", array=True, struct=TopicPartitions),
    )
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupStatePartitionMetadataKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group_id", "string"),)
    group_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitionsInfo(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", default=ZERO_UUID),
        Field("topic_name", "string"),
        Field("partitions", "int32", array=True),
    )
    topic_id: uuid.UUID = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class TopicInfo(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", default=ZERO_UUID),
        Field("topic_name", "string"),
    )
    topic_id: uuid.UUID = ZERO_UUID
    topic_name: str = ""


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupStatePartitionMetadataValue(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("initializing_topics", "struct", array=True, struct=TopicPartitionsInfo),
        Field("initialized_topics", "struct", array=True, struct=TopicPartitionsInfo),
        Field("deleting_topics", "struct", array=True, struct=TopicInfo),
    )
    initializing_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    initialized_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    deleting_topics: list[TopicInfo] = field(default_factory=list)


class GroupRecord(NamedTuple):
    """One record of the topic; a value of None is a tombstone."""

    key: Message
    value: Message | None


class _Kind(NamedTuple):
    number: int
    key: type[Message]
    value: type[Message]
    written: int
    newest: int


COMMIT_VERSION = 3
"""Of a commit without a retention of its own."""

_KINDS = (
    _Kind(1, OffsetCommitKey, OffsetCommitValue, COMMIT_VERSION, 4),
    _Kind(2, GroupMetadataKey, GroupMetadataValue, 3, 4),
    _Kind(3, ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0, 0),
    _Kind(4, ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue, 0, 0),
    _Kind(5, ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0, 0),
    _Kind(6, ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, 0, 0),
    _Kind(7, ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0, 0),
    _Kind(8, ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0, 0),
    _Kind(10, ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue, 0, 0),
    _Kind(11, ShareGroupMetadataKey, ShareGroupMetadataValue, 0, 0),
    _Kind(12, ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue, 0, 0),
    _Kind(13, ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue, 0, 0),
    _Kind(14, ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue, 0, 0),
    _Kind(15, ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue, 0, 0),
    _Kind(16, ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, 0, 0),
)
_BY_KEY = {kind.key: kind for kind in _KINDS}
_BY_NUMBER = {kind.number: kind for kind in _KINDS} | {0: _KINDS[0]}
"""Kind 0 is how the oldest brokers wrote an offset commit."""


def encode_key(key: Message) -> bytearray:
    return encode(key, 0, bytearray(_INT16.pack(_BY_KEY[type(key)].number)))


def encode_record(record: GroupRecord) -> tuple[bytes | bytearray, bytes | bytearray | None]:
    key, value = record
    kind = _BY_KEY[type(key)]
    version = kind.written
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != -1:
        version = 1  # the only version that carries a retention of the commit's own
    encoded = encode_key(key)
    if value is None:
        return encoded, None
    return encoded, encode(value, version, bytearray(_INT16.pack(version)))


def decode_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    """None for a kind of record, or a version of one, that is not known here."""
    if len(key) < 2 or (value is not None and len(value) < 2):
        raise WireError("a record of __consumer_offsets is shorter than its prefix")
    kind = _BY_NUMBER.get(_INT16.unpack_from(key)[0])
    if kind is None:
        return None
    decoded_key, _ = decode(kind.key, 0, key, 2)
    if value is None:
        return GroupRecord(decoded_key, None)
    (version,) = _INT16.unpack_from(value)
    if not 0 <= version <= kind.newest:
        return None
    decoded_value, _ = decode(kind.value, version, value, 2)
    return GroupRecord(decoded_key, decoded_value)
