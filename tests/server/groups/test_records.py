"""The records of __consumer_offsets, byte for byte as Apache Kafka 4.1.0 writes them."""

from __future__ import annotations

import uuid

import pytest

from headrace.server.coordinator.partitioning import java_hash, partition_for
from headrace.server.groups.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from headrace.server.groups.messages.consumer import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    TopicPartitions,
)
from headrace.server.groups.messages.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.server.groups.records import GroupRecord, decode_record, encode_record
from headrace.wire.codec import WireError

# Values made with the classes of kafka-group-coordinator-4.1.0.jar.
FROM_JAVA = [
    (
        GroupRecord(
            ConsumerGroupMemberMetadataKey("g", "m"),
            ConsumerGroupMemberMetadataValue("", "", "c", "h", ["t"], "", -1, ""),
        ),
        "000001010263026802027401ffffffff0100",
    ),
    (
        GroupRecord(
            ConsumerGroupMemberMetadataKey("g", "m"),
            ConsumerGroupMemberMetadataValue(
                "",
                "",
                "c",
                "h",
                ["t"],
                "a.*",
                -1,
                "",
                ClassicMemberMetadata(5, [ClassicProtocol("range", b"\1")]),
            ),
        ),
        "000001010263026802027404612e2affffffff010100100100000005020672616e676502010000",
    ),
    (
        GroupRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(3, 77)),
        "000000000003010008000000000000004d",
    ),
    (GroupRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(3, 0)), "00000000000300"),
    (
        GroupRecord(
            ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
            ConsumerGroupCurrentMemberAssignmentValue(
                3, 2, 1, [TopicPartitions(uuid.UUID(int=(1 << 64) + 2), [1, 2])]
            ),
        ),
        "00000000000300000002010200000000000000010000000000000002030000000100000002000100",
    ),
    (
        GroupRecord(
            GroupMetadataKey("g"),
            GroupMetadataValue(
                "consumer", 2, "range", "m", 9, [MemberMetadata("m", None, "c", "h", 5, 4, b"\1", b"\2")]
            ),
        ),
        "00030008636f6e73756d657200000002000572616e676500016d00000000000000090000000100016dffff00016300016800"
        "0000050000000400000001010000000102",
    ),
    (
        GroupRecord(OffsetCommitKey("g", "t", 1), OffsetCommitValue(4, 2, "x", 8)),
        "00030000000000000004000000020001780000000000000008",
    ),
    (
        GroupRecord(
            ConsumerGroupRegularExpressionKey("g", "a.*"), ConsumerGroupRegularExpressionValue(["t"], 5, 6)
        ),
        "00000202740000000000000005000000000000000600",
    ),
]


@pytest.mark.parametrize(("record", "java"), FROM_JAVA)
def test_values_are_the_bytes_that_kafka_writes_and_read_back(record: GroupRecord, java: str) -> None:
    key, value = encode_record(record)
    assert value is not None
    assert value.hex() == java
    assert decode_record(bytes(key), bytes(value)) == record


def test_keys_start_with_the_kind_of_record() -> None:
    assert encode_record(GroupRecord(OffsetCommitKey("g", "t", 7), None)) == (b"\0\1\0\1g\0\1t\0\0\0\7", None)
    assert encode_record(GroupRecord(GroupMetadataKey("g"), None)) == (b"\0\2\0\1g", None)
    key, _ = encode_record(GroupRecord(ConsumerGroupRegularExpressionKey("g", "r"), None))
    assert key == b"\0\x10\0\1g\0\1r"


def test_a_commit_with_its_own_retention_is_written_in_the_version_that_has_it() -> None:
    record = GroupRecord(OffsetCommitKey("g", "t", 0), OffsetCommitValue(4, -1, "", 8, 99))
    key, value = encode_record(record)
    assert value is not None
    assert value[:2] == b"\0\1"
    assert decode_record(bytes(key), bytes(value)) == record


def test_commits_of_the_oldest_brokers_are_read() -> None:
    old = decode_record(b"\0\0\0\1g\0\1t\0\0\0\7", b"\0\0" + bytes(7) + b"\5\0\1m" + bytes(8))
    assert old is not None
    assert old.key == OffsetCommitKey("g", "t", 7)
    assert isinstance(old.value, OffsetCommitValue)
    assert (old.value.offset, old.value.metadata) == (5, "m")


def test_kinds_and_versions_of_the_future_are_left_alone() -> None:
    assert decode_record(b"\0\x63whatever", b"\0\0") is None
    assert decode_record(b"\0\2\0\1g", b"\0\x63whatever") is None


def test_broken_records_are_refused() -> None:
    with pytest.raises(WireError):
        decode_record(b"\0", None)
    with pytest.raises(WireError):
        decode_record(b"\0\1\0\7g", None)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("", 0), ("group", 98629247), ("my-consumer-group", 1513705513), ("\U0001f600", 1772899)],
)
def test_groups_hash_as_java_strings_do(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed
    assert partition_for(text, 50) == abs(hashed) % 50


def test_the_one_number_without_a_positive_counterpart_goes_to_partition_zero() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 7) == 0
