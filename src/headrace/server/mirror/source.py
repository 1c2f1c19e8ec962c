"""The cluster that a link mirrors: its metadata, and one shared connection to each of its brokers.

It is asked as any consumer and administrator asks, so Apache Kafka will do; every request has one version, and a source that is too
old for one of them is refused with a sentence.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headrace.clock import Clock
from headrace.link.aio import AsyncConnection
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import KafkaSettings
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.fetch import FetchRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

EARLIEST, LATEST = -2, -1
TOPIC_RESOURCE, SET_ON_THE_TOPIC = 2, 1

VERSIONS: dict[type[Request], int] = {
    FetchRequest: 13,
    ListOffsetsRequest: 7,
    MetadataRequest: 12,
    OffsetFetchRequest: 8,
    FindCoordinatorRequest: 4,
    ListGroupsRequest: 4,
    DescribeConfigsRequest: 4,
}
"""Kafka 3.1 and newer have them all, Kafka 4 still has."""


@dataclass(frozen=True, slots=True)
class SourceTopic:
    name: str
    id: uuid.UUID
    leaders: Mapping[int, int]
    """By partition; -1 while there is none."""
    epochs: Mapping[int, int]
    internal: bool


class SourceCluster:
    def __init__(self, settings: KafkaSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._nodes: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], AsyncConnection] = {}
        self.cluster_id: str | None = None
        """As of the last metadata."""

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    @property
    def nodes(self) -> list[int]:
        """Its brokers as of the last metadata."""
        return sorted(self._nodes)

    async def connect(self, node: int) -> AsyncConnection:
        """A connection of the caller's own."""
        return await self._open(self._address(node))

    async def call(self, request: Request[R], node: int | None = None, timeout: float | None = None) -> R:
        """Ask one broker of the source, or any."""
        connection = await (self._any() if node is None else self._shared(self._address(node)))
        wait = self._settings.request_timeout if timeout is None else timeout
        return await connection.call(request, VERSIONS[type(request)], wait)

    def _address(self, node: int) -> tuple[str, int]:
        if node not in self._nodes:
            raise BrokerUnavailable(f"broker {node} of the source is not known")
        return self._nodes[node]

    async def _any(self) -> AsyncConnection:
        for connection in self._connections.values():
            if connection.fresh:
                return connection
        known = list(self._nodes.values())
        random.shuffle(known)
        reasons = []
        for address in dict.fromkeys([*known, *self._settings.bootstrap]):
            try:
                return await self._shared(address)
            except BrokerUnavailable as error:
                reasons.append(str(error))
        raise BrokerUnavailable("; ".join(reasons))

    async def _shared(self, address: tuple[str, int]) -> AsyncConnection:
        connection = self._connections.get(address)
        if connection is None or not connection.fresh:
            if connection is not None:
                connection.close_when_answered()
            connection = self._connections[address] = await self._open(address)
        return connection

    async def _open(self, address: tuple[str, int]) -> AsyncConnection:
        settings = self._settings
        connection = await AsyncConnection.connect(
            *address, settings.client_id.encode(), self._clock, settings=settings
        )
        try:
            reply = await connection.call(ApiVersionsRequest(), 0, settings.request_timeout)
            served = {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys}
            for request, version in VERSIONS.items():
                low, high = served.get(request.API_KEY, (0, -1))
                if not low <= version <= high:
                    name = request.__name__.removesuffix("Request")
                    raise KafkaError(
                        ErrorCode.UNSUPPORTED_VERSION,
                        f"The source at {connection.address} does not serve version {version} of {name}; a mirror needs "
                        "Kafka 3.1 or newer.",
                    )
        except BaseException:
            connection.close()
            raise
        return connection

    # What the source holds.

    async def topics(self, names: Sequence[str] | None = None) -> dict[str, SourceTopic]:
        """Those of the named topics that exist and that the link's user may see; all without names."""
        asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        reply = await self.call(MetadataRequest(asked, allow_auto_topic_creation=False))
        self._nodes = {broker.node_id: (broker.host, broker.port) for broker in reply.brokers}
        self.cluster_id = reply.cluster_id
        found = {}
        for topic in reply.topics:
            if topic.name is None or topic.error_code not in (0, ErrorCode.LEADER_NOT_AVAILABLE):
                continue
            found[topic.name] = SourceTopic(
                topic.name,
                topic.topic_id,
                {each.partition_index: each.leader_id for each in topic.partitions},
                {each.partition_index: each.leader_epoch for each in topic.partitions},
                topic.is_internal,
            )
        return found

    async def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """The settings of each topic's own; a topic whose settings the link's user may not see is left out."""
        resources = [DescribeConfigsResource(TOPIC_RESOURCE, name, None) for name in names]
        reply = await self.call(DescribeConfigsRequest(resources))
        return {
            result.resource_name: {
                each.name: each.value
                for each in result.configs
                if each.config_source == SET_ON_THE_TOPIC and each.value is not None
            }
            for result in reply.results
            if not result.error_code
        }

    async def offset(self, node: int, topic: str, index: int, time: int, timeout: float | None = None) -> int:
        """The first (EARLIEST) or the next (LATEST) offset of a partition, as its leader says."""
        asked = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, [ListOffsetsPartition(index, -1, time)])])
        reply = await self.call(asked, node, timeout)
        answer = reply.topics[0].partitions[0]
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        return answer.offset

    async def groups(self) -> set[str]:
        """The ids of all groups, share and streams groups excepted."""
        found: set[str] = set()
        for node in self.nodes:
            reply = await self.call(ListGroupsRequest(), node)
            if reply.error_code:
                raise KafkaError(ErrorCode(reply.error_code))
            found |= {each.group_id for each in reply.groups if each.protocol_type in ("consumer", "")}
        return found

    async def committed(
        self, groups: Iterable[str]
    ) -> dict[str, dict[tuple[str, int], tuple[int, int, str]]]:
        """By group: (offset, leader epoch, metadata) of each partition."""
        asked = sorted(groups)
        reply = await self.call(FindCoordinatorRequest("", 0, asked))
        by_node: dict[int, list[str]] = {}
        for each in reply.coordinators:
            if not each.error_code:
                by_node.setdefault(each.node_id, []).append(each.key)
        found: dict[str, dict[tuple[str, int], tuple[int, int, str]]] = {}
        for node, names in by_node.items():
            wanted = [OffsetFetchRequestGroup(name, topics=None) for name in names]
            answer = await self.call(OffsetFetchRequest(groups=wanted), node)
            for group in answer.groups:
                if group.error_code:
                    continue
                found[group.group_id] = {
                    (topic.name, each.partition_index): (
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata or "",
                    )
                    for topic in group.topics
                    for each in topic.partitions
                    if not each.error_code and each.committed_offset >= 0
                }
        return found
