"""OffsetCommit read and written by hand, checked against the ordinary codec."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.codec import WireError, encode
from headrace.wire.frames import encode_reply as encode_ordinary
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.wire.offset_commit import encode_reply, read_commit

VERSIONS = range(2, 11)
texts = st.text(max_size=8) | st.just("x" * 200)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
partitions = st.builds(OffsetCommitRequestPartition, int32s, int64s, int32s, st.none() | texts)
topics = st.builds(OffsetCommitRequestTopic, texts, st.lists(partitions, max_size=3), st.uuids())
requests = st.builds(
    OffsetCommitRequest, texts, int32s, texts, int64s, st.none() | texts, st.lists(topics, max_size=3)
)


@pytest.mark.parametrize("version", VERSIONS)
@given(request=requests)
@settings(max_examples=60, deadline=None)
def test_reading_agrees_with_the_ordinary_codec(version: int, request: OffsetCommitRequest) -> None:
    commit, _ = read_commit(memoryview(b"head" + encode(request, version)), 4, version)
    assert commit.group_id == request.group_id
    assert commit.generation == request.generation_id_or_member_epoch
    assert commit.member_id == request.member_id
    assert commit.retention_ms == (request.retention_time_ms if version <= 4 else -1)
    assert commit.instance_id == (request.group_instance_id if version >= 7 else None)
    assert [(topic.topic, [tuple(each) for each in topic.partitions]) for topic in commit.topics] == [
        (
            str(topic.topic_id) if version >= 10 else topic.name,
            [
                (
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch if version >= 6 else -1,
                    each.committed_metadata or "",
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    assert dict(commit.ids) == {
        str(topic.topic_id): topic.topic_id.bytes for topic in request.topics if version >= 10
    }


results = st.lists(
    st.tuples(texts, st.lists(st.tuples(int32s, st.integers(-1, 120)), max_size=3)), max_size=3
)


@pytest.mark.parametrize("version", VERSIONS)
@given(results=results)
@settings(max_examples=60, deadline=None)
def test_writing_agrees_with_the_ordinary_codec(version: int, results: list) -> None:
    ids = {topic: uuid.uuid5(uuid.NAMESPACE_OID, topic) for topic, _ in results}
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic, [OffsetCommitResponsePartition(*each) for each in partitions], ids[topic]
            )
            for topic, partitions in results
        ]
    )
    raw = {topic: each.bytes for topic, each in ids.items()}
    assert encode_reply(results, version, 77, raw) == encode_ordinary(response, version, 77)


@pytest.mark.parametrize("version", [2, 7, 9, 10])
def test_a_cut_request_is_refused_wherever_it_is_cut(version: int) -> None:
    topic = OffsetCommitRequestTopic("topic", [OffsetCommitRequestPartition(1, 2, 3, "note")])
    whole = encode(OffsetCommitRequest("group", 1, "member", -1, "instance", [topic]), version)
    for end in range(len(whole)):
        with pytest.raises(WireError):
            read_commit(memoryview(whole)[:end], 0, version)


@pytest.mark.parametrize("version", [7, 9, 10])
@given(data=st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_noise_is_refused_or_read_and_never_anything_else(version: int, data: bytes) -> None:
    try:
        read_commit(memoryview(data), 0, version)
    except WireError:
        pass
