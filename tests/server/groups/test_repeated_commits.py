"""A connection that commits the same partitions again and again is answered as if each commit were its first."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest

from headrace.testing.topics import create_topic, unique_name
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.wire.schema import ZERO_UUID
from tests.waiting import until


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def name(bootstrap: str) -> str:
    name = unique_name("committed")
    create_topic(bootstrap, name, 4)
    return name


@pytest.fixture
def client(bootstrap: str, group: str) -> Iterator[WireClient]:
    with WireClient(bootstrap) as client:
        find(client, group)
        yield client


def find(client: WireClient, group: str) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    until(lambda: client.call(request, 4).coordinators[0].error_code == 0)


def id_of(client: WireClient, topic: str) -> uuid.UUID:
    (known,) = client.call(MetadataRequest([MetadataRequestTopic(name=topic)]), 12).topics
    return known.topic_id


def commit(
    client: WireClient,
    group: str,
    topic: str,
    offsets: dict[int, int],
    *,
    version: int = 8,
    metadata: str = "",
) -> list[int]:
    """The error of each partition."""
    partitions = [
        OffsetCommitRequestPartition(partition, offset, committed_metadata=metadata)
        for partition, offset in offsets.items()
    ]
    topic_id = id_of(client, topic) if version >= 10 else ZERO_UUID
    asked = OffsetCommitRequestTopic(topic, partitions, topic_id)
    reply = client.call(OffsetCommitRequest(group, -1, "", topics=[asked]), version)
    (answer,) = reply.topics
    assert (answer.name, answer.topic_id) == ("" if version >= 10 else topic, topic_id)
    assert [each.partition_index for each in answer.partitions] == list(offsets)
    return [each.error_code for each in answer.partitions]


def committed(client: WireClient, group: str) -> dict[int, int]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)])
    (found,) = client.call(request, 8).groups
    return {
        each.partition_index: each.committed_offset for topic in found.topics for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_every_commit_counts(client: WireClient, group: str, name: str, version: int) -> None:
    for start in range(5):
        offsets = {partition: 100 * start + partition for partition in range(4)}
        assert commit(client, group, name, offsets, version=version) == [0] * 4
        assert committed(client, group) == offsets


def test_other_partitions_versions_and_metadata_in_between_do_no_harm(
    client: WireClient, group: str, name: str
) -> None:
    expected: dict[int, int] = {}
    for number in range(30):
        offsets = {number % 4: number, (number + 1) % 4: number + 1} if number % 3 else {0: number}
        metadata = "x" * (number % 5)
        assert not any(commit(client, group, name, offsets, version=2 + number % 9, metadata=metadata))
        expected |= offsets
    assert committed(client, group) == expected


def test_a_topic_that_goes_is_missed_at_once(
    client: WireClient, bootstrap: str, group: str, name: str
) -> None:
    assert commit(client, group, name, {0: 1}) == [0]
    assert commit(client, group, name, {0: 2}) == [0]
    with WireClient(bootstrap) as other:
        other.call(DeleteTopicsRequest(topics=[DeleteTopicState(name)], timeout_ms=30_000), 6)
    assert commit(client, group, name, {0: 3}) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert committed(client, group) == {}


def test_a_group_that_gets_members_refuses_the_next_commit_of_others(
    client: WireClient, bootstrap: str, group: str, name: str
) -> None:
    assert commit(client, group, name, {0: 1}) == [0]
    with WireClient(bootstrap) as member:
        protocols = [JoinGroupRequestProtocol("range", b"")]
        joined = member.call(JoinGroupRequest(group, 10_000, 30_000, "", None, "consumer", protocols), 3)
        assert joined.error_code == 0
        assert commit(client, group, name, {0: 2}) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_many_connections_of_many_groups_all_get_their_own_replies(bootstrap: str, name: str) -> None:
    groups = [f"group-{uuid.uuid4().hex[:8]}" for _ in range(5)]
    failures: list[object] = []

    def work(group: str, partition: int) -> None:
        try:
            with WireClient(bootstrap) as client:
                find(client, group)
                for offset in range(50):
                    assert commit(client, group, name, {partition: offset}) == [0]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each, n)) for each in groups for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with WireClient(bootstrap) as client:
        for group in groups:
            assert committed(client, group) == dict.fromkeys(range(4), 49)
