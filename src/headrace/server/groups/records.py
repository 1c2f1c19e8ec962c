"""The records of `__consumer_offsets`, in Kafka's own formats and versions.

A key starts with two bytes that say what kind of record it is, a value with two bytes that say which version
it has. Reading accepts every version Kafka 4.1 reads; writing uses the one Kafka 4.1 writes. Records of share groups are written
from `share.version` 1 on.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headrace.server.groups.messages.classic import GroupMetadataKey, GroupMetadataValue
from headrace.server.groups.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from headrace.server.groups.messages.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.server.groups.messages.share import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from headrace.wire.codec import WireError, decode, encode
from headrace.wire.schema import Message

_INT16 = struct.Struct(">h")


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
