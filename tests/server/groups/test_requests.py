"""The replies to requests about groups, byte by byte: clients act on the error codes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from headrace.server.security.operations import TOPIC, Operation, Resource
from headrace.testing.topics import create_topic
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.sync_group import SyncGroupRequest
from tests.waiting import until


def find(client: WireClient, group: str) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    until(lambda: client.call(request, 4).coordinators[0].error_code == 0)


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def client(bootstrap: str, group: str) -> Iterator[WireClient]:
    with WireClient(bootstrap) as client:
        find(client, group)
        yield client


def commit(client: WireClient, group: str, topic: str) -> None:
    topics = [OffsetCommitRequestTopic(topic, [OffsetCommitRequestPartition(0, 5)])]
    reply = client.call(OffsetCommitRequest(group, -1, "", topics=topics), 8)
    assert reply.topics[0].partitions[0].error_code == 0


def test_offsets_of_topics_are_committed_and_fetched_by_id(
    client: WireClient, group: str, topic: str
) -> None:
    (known,) = client.call(MetadataRequest([MetadataRequestTopic(name=topic)]), 12).topics
    unknown = uuid.uuid4()
    asked = [
        OffsetCommitRequestTopic("", [OffsetCommitRequestPartition(index, 7) for index in indexes], topic_id)
        for topic_id, indexes in ((unknown, [0]), (known.topic_id, [0, 9]))
    ]
    reply = client.call(OffsetCommitRequest(group, -1, "", topics=asked), 10)
    assert {
        (each.topic_id, one.partition_index): one.error_code
        for each in reply.topics
        for one in each.partitions
    } == {
        (known.topic_id, 0): ErrorCode.NONE,
        (known.topic_id, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (unknown, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }

    def fetched(
        topics: list[OffsetFetchRequestTopics] | None,
    ) -> dict[tuple[uuid.UUID, int], tuple[int, int]]:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics)])
        (found,) = client.call(request, 10).groups
        return {
            (each.topic_id, one.partition_index): (one.committed_offset, one.error_code)
            for each in found.topics
            for one in each.partitions
        }

    wanted = [OffsetFetchRequestTopics("", [0], each) for each in (known.topic_id, unknown)]
    assert fetched(None) == {(known.topic_id, 0): (7, 0)}
    assert fetched(wanted) == {
        (known.topic_id, 0): (7, 0),
        (unknown, 0): (-1, ErrorCode.UNKNOWN_TOPIC_ID),
    }


def test_a_group_that_cannot_be_deleted_is_explained(client: WireClient, group: str) -> None:
    (result,) = client.call(DeleteGroupsRequest([group]), 3).results
    assert result.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert result.error_message == f"Group {group} does not exist."


@pytest.mark.parametrize("protocol", [(None, "range"), ("consumer", None), (None, None)])
def test_a_sync_must_name_the_protocol_it_is_for(
    client: WireClient, group: str, protocol: tuple[str | None, str | None]
) -> None:
    request = SyncGroupRequest(group, 1, "member", None, *protocol)
    assert client.call(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    # Before version 5 it could not, and the member is what is wrong.
    assert client.call(request, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_a_partition_that_does_not_exist_cannot_be_deleted(
    client: WireClient, group: str, topic: str
) -> None:
    commit(client, group, topic)
    topics = [
        OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index) for index in (9, 0)]),
        OffsetDeleteRequestTopic("nowhere", [OffsetDeleteRequestPartition(0)]),
    ]
    reply = client.call(OffsetDeleteRequest(group, topics), 0)
    assert reply.error_code == 0
    assert [
        (each.name, [(partition.partition_index, partition.error_code) for partition in each.partitions])
        for each in reply.topics
    ] == [
        (topic, [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, ErrorCode.NONE)]),
        ("nowhere", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]


def test_a_group_that_is_named_twice_is_deleted_once(client: WireClient, group: str, topic: str) -> None:
    commit(client, group, topic)
    reply = client.call(DeleteGroupsRequest([group, group]), 2)
    assert [(each.group_id, each.error_code) for each in reply.results] == [(group, ErrorCode.NONE)]


class Veil:
    """An authorizer that can hide one topic."""

    hidden = ""

    def authorize(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        return resource != Resource(TOPIC, self.hidden)


def test_a_pattern_does_not_match_topics_that_the_member_may_not_see(make_broker) -> None:
    veil = Veil()
    broker = make_broker(authorizer=veil)
    with WireClient(broker.bootstrap) as client:
        for name in ("orders-open", "orders-secret"):
            create_topic(broker.bootstrap, name)
        veil.hidden = "orders-secret"
        find(client, "group")
        request = ConsumerGroupHeartbeatRequest(
            "group",
            "member",
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex="orders-.*",
            topic_partitions=[],
        )
        reply = client.call(request, 1)
    assert reply.error_code == 0
    known = broker.node.cluster.image.topics_by_id
    assert [known[each.topic_id].name for each in reply.assignment.topic_partitions] == ["orders-open"]
