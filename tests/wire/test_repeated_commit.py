"""A commit that differs from the last one only in its offsets is recognised; any other is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.frames import encode_request, read_client_id, read_request_start
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.offset_commit import FLEXIBLE, RepeatedCommit, read_commit

OFFSETS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=200)
PARTITIONS = st.builds(
    OffsetCommitRequestPartition,
    partition_index=st.integers(0, 2**31 - 1),
    committed_offset=OFFSETS,
    committed_leader_epoch=st.integers(-1, 9),
    committed_metadata=st.none() | TEXTS,
)
TOPICS = st.lists(
    st.builds(OffsetCommitRequestTopic, name=TEXTS, partitions=st.lists(PARTITIONS, max_size=4)), max_size=4
)
COMMITS = st.builds(
    OffsetCommitRequest,
    group_id=TEXTS,
    generation_id_or_member_epoch=st.integers(-1, 9),
    member_id=TEXTS,
    topics=TOPICS,
)
VERSIONS = st.integers(2, 9)


def frame_of(request: OffsetCommitRequest, version: int, correlation_id: int) -> memoryview:
    return memoryview(encode_request(request, version, correlation_id, b"client"))[4:]


def offsets_of(request: OffsetCommitRequest) -> list[int]:
    return [each.committed_offset for topic in request.topics for each in topic.partitions]


def remember(frame: memoryview, version: int) -> RepeatedCommit:
    _, position = read_client_id(frame, version >= FLEXIBLE)
    _, offsets_at = read_commit(frame, position, version)
    return RepeatedCommit(frame, offsets_at)


@given(COMMITS, VERSIONS, st.integers(-(2**31), 2**31 - 1), st.data())
@settings(deadline=None)
def test_the_same_commit_with_other_offsets_is_recognised(request, version, correlation_id, data) -> None:
    repeated = remember(frame_of(request, version, 1), version)
    for topic in request.topics:
        for each in topic.partitions:
            each.committed_offset = data.draw(OFFSETS)
    again = frame_of(request, version, correlation_id)
    assert repeated.read(again) == (correlation_id, *offsets_of(request))


@given(COMMITS, VERSIONS, st.data())
@settings(deadline=None)
def test_a_frame_that_differs_anywhere_else_is_not(request, version, data) -> None:
    frame = frame_of(request, version, 1)
    repeated = remember(frame, version)
    _, position = read_client_id(frame, version >= FLEXIBLE)
    _, offsets_at = read_commit(frame, position, version)
    free = set(range(4, 8)) | {at + byte for at in offsets_at for byte in range(8)}
    changed = bytearray(frame)
    index = data.draw(st.sampled_from([each for each in range(len(frame)) if each not in free]))
    changed[index] ^= data.draw(st.integers(1, 255))
    assert repeated.read(changed) is None


@pytest.mark.parametrize("cut", [1, 8, 20])
def test_a_shorter_or_longer_frame_is_not(cut: int) -> None:
    topic = OffsetCommitRequestTopic("orders", [OffsetCommitRequestPartition(0, 5)])
    frame = frame_of(OffsetCommitRequest("group", topics=[topic]), 9, 1)
    repeated = remember(frame, 9)
    assert repeated.read(frame[:-cut]) is None
    assert repeated.read(bytes(frame) + bytes(cut)) is None
    assert read_request_start(frame)[2] == repeated.read(frame)[0]
