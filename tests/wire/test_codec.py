"""Messages: byte for byte what kio writes, in every version it has; garbage is a WireError and nothing else."""

import importlib
import io
import pkgutil
import random
import struct
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

import headrace.wire.messages
from headrace.wire.codec import WireError, decode, encode, read_uvarint, write_uvarint
from headrace.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.fetch import FetchRequest
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.wire.schema import Message, Request, Response

MODULES = sorted(module.name for module in pkgutil.iter_modules(headrace.wire.messages.__path__))
OUR_OWN = {"alter_mirrors", "describe_mirrors", "report_mirrors"}
"""Requests that Kafka, and so kio, does not have."""
RANGES = {"int8": 100, "int16": 80, "uint16": 60000, "int32": 2**31 - 1, "int64": 2**40}


NEWER_THAN_KIO = {
    ("api_versions", 5),
    ("delete_groups", 3),
    ("streams_group_describe", 1),
    ("streams_group_heartbeat", 1),
    ("streams_group_topology_description_update", 0),
    ("txn_offset_commit", 6),
}
"""Kafka 4.4's newest; Java's own bytes stand for these (test_golden.py)."""


def roots(name):
    module = importlib.import_module(f"headrace.wire.messages.{name}")
    found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Request | Response)]
    found = [c for c in found if c not in (Request, Response)]
    if not found:
        found = [getattr(module, "".join(part.capitalize() for part in name.split("_")))]
    return found


def random_value(dice, field):
    match field.kind:
        case "bool":
            return dice.random() < 0.5
        case "string":
            return "".join(dice.choices("abcdé漢", k=dice.choice([0, 3, 9, 200])))
        case "bytes" | "records":
            return dice.randbytes(dice.choice([0, 1, 130]))
        case "uuid":
            return uuid.UUID(int=dice.getrandbits(127) + 1)
        case "float64":
            return float(dice.randint(-9, 9))
        case "int16" if field.name.endswith("error_code") and not field.array:
            return dice.choice([0, 3, 41])
        case kind:
            return dice.randint(0, RANGES[kind])


def random_message(dice, cls, version):
    message = cls()
    for field in cls.FIELDS:
        if not field.versions[0] <= version <= field.versions[1]:
            continue

        def one(field=field):
            return random_message(dice, field.struct, version) if field.struct else random_value(dice, field)

        can_be_null = field.nullable and field.nullable[0] <= version <= field.nullable[1]
        if can_be_null and dice.random() < 0.2:
            value = None
        elif field.array:
            value = [one() for _ in range(dice.choice([0, 1, 2, 130 if not field.struct else 3]))]
        else:
            value = one()
        setattr(message, field.name, value)
    return message


@pytest.mark.parametrize("name", [name for name in MODULES if name not in OUR_OWN])
def test_every_version_is_what_kio_writes_and_reads_back_the_same(name):
    dice = random.Random(name)
    for root in roots(name):
        entity = root.__mro__[1].__name__.lower().replace("message", "data")
        request = next((c for c in roots(name) if issubclass(c, Request)), None)
        low, high = request.VERSIONS if request else (0, 3)
        low = max(low, 1 if name == "list_offsets" else 0)  # kio has no version 0 of it
        for version in range(low, high + 1):
            try:
                module = importlib.import_module(f"kio.schema.{name}.v{version}.{entity}")
            except ModuleNotFoundError:  # newer than kio
                assert (name, version) in NEWER_THAN_KIO
                continue
            peer = getattr(module, root.__name__)
            for _ in range(12):
                message = random_message(dice, root, version)
                ours = bytes(encode(message, version))
                theirs, size = entity_reader(peer)(ours, 0)
                assert size == len(ours)
                written = io.BytesIO()
                entity_writer(peer)(written, theirs)
                assert written.getvalue() == ours
                assert decode(root, version, memoryview(ours)) == (message, len(ours))


def test_list_offsets_0_is_what_old_monitors_send_and_read():
    asked = ListOffsetsTopic("orders", [ListOffsetsPartition(3, timestamp=-1, max_num_offsets=1)])
    frame = b"".join(
        [b"\xff" * 4, b"\0\0\0\1", b"\0\6orders", b"\0\0\0\1", b"\0\0\0\3", b"\xff" * 8, b"\0\0\0\1"]
    )
    assert bytes(encode(ListOffsetsRequest(-1, topics=[asked]), 0)) == frame
    told = ListOffsetsPartitionResponse(3, 0, old_style_offsets=[7])
    reply = ListOffsetsResponse(topics=[ListOffsetsTopicResponse("orders", [told])])
    assert bytes(encode(reply, 0)) == b"".join(
        [b"\0\0\0\1", b"\0\6orders", b"\0\0\0\1", b"\0\0\0\3", b"\0\0", b"\0\0\0\1", b"\0" * 7 + b"\7"]
    )


def test_a_reply_leaves_out_what_the_version_does_not_have():
    reply = MetadataResponse(cluster_id="abc", controller_id=7)
    assert len(encode(reply, 0)) < len(encode(reply, 1)) < len(encode(reply, 2))


def test_null_becomes_empty_where_the_version_has_no_null():
    assert decode(MetadataRequest, 0, bytes(encode(MetadataRequest(topics=None), 0)))[0].topics == []
    assert decode(MetadataRequest, 1, bytes(encode(MetadataRequest(topics=None), 1)))[0].topics is None


def test_unknown_tagged_fields_are_skipped():
    known = encode(ApiVersionsRequest("client", "1.0"), 3)
    assert known[-1] == 0
    known[-1:] = bytes([2, 40, 3, 1, 2, 3, 41, 0])
    message, end = decode(ApiVersionsRequest, 3, bytes(known))
    assert (message.client_software_name, end) == ("client", len(known))


def test_a_giant_count_is_refused_before_anything_is_allocated():
    with pytest.raises(WireError, match="exceeds"):
        decode(CreateTopicsRequest, 2, struct.pack(">i", 2**31 - 1))


def test_more_elements_or_tags_than_kafka_4_4_allows_are_refused():
    with pytest.raises(WireError, match="1000001 elements"):
        decode(AlterReplicaLogDirsRequest, 1, struct.pack(">i", 1_000_001) + bytes(1_000_001))
    asked = DeleteGroupsRequest([""] * 1_000_000)
    assert decode(DeleteGroupsRequest, 2, bytes(encode(asked, 2)))[0] == asked
    asked.groups_names.append("")
    for version in (1, 2):
        with pytest.raises(WireError, match="1000001 elements"):
            decode(DeleteGroupsRequest, version, bytes(encode(asked, version)))
    tags = bytearray()
    write_uvarint(tags, 10_001)
    tags += b"\x63\0" * 10_001
    for known in (ApiVersionsRequest("client", "1.0"), FetchRequest()):
        version = known.VERSIONS[1]
        frame = encode(known, version)[:-1] + tags
        with pytest.raises(WireError, match="10001 tagged fields"):
            decode(type(known), version, bytes(frame))


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_message_cut_anywhere_is_refused(cut):
    whole = bytes(
        encode(CreateTopicsRequest(topics=[CreatableTopic(name="orders" * 5, num_partitions=3)]), 7)
    )
    with pytest.raises(WireError):
        decode(CreateTopicsRequest, 7, whole[:-cut])


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(MODULES), st.integers(0, 13), st.binary(max_size=200))
def test_garbage_is_a_wire_error_or_a_message_and_nothing_else(name, version, data):
    for root in roots(name):
        try:
            message, end = decode(root, version, data)
        except WireError:
            continue
        assert isinstance(message, Message)
        assert end <= len(data)


@given(st.integers(0, 2**32 - 1))
def test_variable_length_numbers_round_trip(value):
    out = bytearray()
    write_uvarint(out, value)
    assert read_uvarint(bytes(out), 0) == (value, len(out))


def test_metadata_topics_by_name_survive_old_versions():
    message = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    for version in range(14):
        decoded, _ = decode(MetadataRequest, version, bytes(encode(message, version)))
        assert decoded.topics is not None
        assert [topic.name for topic in decoded.topics] == ["orders"]
