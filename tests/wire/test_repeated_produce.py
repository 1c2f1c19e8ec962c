"""A produce request is recognised by how it begins, its records found, and its reply made, in every version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.frames import encode_request, read_client_id
from headrace.wire.messages import produce as messages
from headrace.wire.produce import FLEXIBLE, PartitionReply, encode_reply, read_request
from headrace.wire.repeated_produce import ReplyForm, Start, read_records

VERSIONS = st.integers(3, 13)
NUMBERS = st.integers(-(2**31), 2**31 - 1)
OFFSETS = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.sampled_from([0, 1, 126, 127, 128, 16382, 16383, 16384]).map(bytes)
NAMES = st.text(min_size=1, max_size=200)


def frame_of(version: int, topic: str, records: bytes, number: int = 1, partition: int = 0) -> memoryview:
    data = messages.PartitionProduceData(partition, records)
    topics = [messages.TopicProduceData(name=topic, partition_data=[data])]
    request = messages.ProduceRequest(None, 1, 30_000, topics)
    return memoryview(encode_request(request, version, number, b"client"))[4:]


def length_at(frame: memoryview, version: int) -> int:
    _, position = read_client_id(frame, version >= FLEXIBLE)
    return read_request(frame, position, version).length_at


@given(VERSIONS, NAMES, RECORDS, RECORDS, NUMBERS)
@settings(deadline=None)
def test_the_records_of_the_next_request_are_found(version, topic, before, after, number) -> None:
    frame, again = frame_of(version, topic, before), frame_of(version, topic, after, number)
    start = Start(length_at(frame, version))
    ours, theirs = start.read(frame), start.read(again)
    assert (ours[0], ours[2]) == (theirs[0], theirs[2])
    assert theirs[1] == number
    records = read_records(again, start.size, version)
    assert records is not None
    assert bytes(records) == after


@given(VERSIONS, NAMES, st.data())
@settings(deadline=None)
def test_a_request_that_begins_otherwise_is_told_apart(version, topic, data) -> None:
    frame = frame_of(version, topic, b"records")
    start = Start(length_at(frame, version))
    changed = bytearray(frame)
    index = data.draw(st.sampled_from([each for each in range(start.size) if not 4 <= each < 8]))
    changed[index] ^= data.draw(st.integers(1, 255))
    ours, theirs = start.read(frame), start.read(memoryview(changed))
    assert (ours[0], ours[2]) != (theirs[0], theirs[2])


@pytest.mark.parametrize("version", range(3, 14))
def test_anything_unusual_behind_the_beginning_is_left_to_the_plain_path(version: int) -> None:
    frame = frame_of(version, "orders", b"records")
    at = length_at(frame, version)
    assert read_records(frame, at, version) is not None
    for cut in range(at, len(frame)):
        assert read_records(frame[:cut], at, version) is None
    for trailing in (b"\0", b"\0\0\0", b"\1"):
        assert read_records(memoryview(bytes(frame) + trailing), at, version) is None
    null = b"\0\0\0\0" if version >= FLEXIBLE else b"\xff\xff\xff\xff"
    assert read_records(memoryview(bytes(frame[:at]) + null), at, version) is None


@given(VERSIONS, NAMES.map(str.encode), st.integers(0, 2**31 - 1), NUMBERS, OFFSETS, OFFSETS, OFFSETS)
@settings(deadline=None)
def test_a_reply_is_that_of_the_plain_path(
    version, topic, partition, number, offset, append_time, log_start
) -> None:
    if version >= 13:
        topic = topic.ljust(16)[:16]
    written = PartitionReply(partition, 0, offset, append_time, log_start)
    expected = encode_reply([(topic, [written])], version, number)
    assert ReplyForm(topic, partition, version).reply(number, offset, append_time, log_start) == expected
