"""What handlers ask of the controller. An answer is given once this broker's own image shows what was changed."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from headrace.clock import Clock
from headrace.server.cluster.config_changes import ConfigOp, Errors
from headrace.server.cluster.controller import Controller
from headrace.server.cluster.image import ConfigResource, MetadataImage
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS, internal_topic
from headrace.server.cluster.topics import CreatedTopic
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from headrace.wire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from headrace.wire.messages.update_features import UpdateFeaturesRequest

if TYPE_CHECKING:
    from headrace.server.cluster.node import ClusterNode

T = TypeVar("T")

CREATE_TOPICS_VERSION = 7
ALLOCATE_VERSION = 0

PATIENCE = 2.0
"""Seconds to wait for a topic that is created on first use; then the client is told to ask again."""


class Admin:
    """Operations of the controller, from the broker that `node` is. NOT_CONTROLLER when another broker is the controller."""

    def __init__(self, node: ClusterNode, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._creations: dict[tuple[str, ...], tuple[asyncio.Task[dict[str, ErrorCode]], float]] = {}
        """Topics that are being created on first use, and until when one waits for that."""

    @property
    def image(self) -> MetadataImage:
        """What the controller has decided so far, which this broker's image follows."""
        return self._controller().image

    async def create_topics(
        self, requested: Sequence[CreatableTopic], validate_only: bool = False
    ) -> list[CreatedTopic]:
        return await self._do(lambda controller: controller.create_topics(requested, validate_only))

    async def create_partitions(
        self, requested: Sequence[CreatePartitionsTopic], validate_only: bool = False
    ) -> list[CreatePartitionsTopicResult]:
        return await self._do(lambda controller: controller.create_partitions(requested, validate_only))

    async def delete_topics(self, topic_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, KafkaError | None]:
        return await self._do(lambda controller: controller.delete_topics(topic_ids))

    async def incremental_alter_configs(
        self, requested: Mapping[ConfigResource, Sequence[ConfigOp]], validate_only: bool = False
    ) -> Errors:
        return await self._do(
            lambda controller: controller.incremental_alter_configs(requested, validate_only)
        )

    async def alter_configs(
        self, requested: Mapping[ConfigResource, Mapping[str, str | None]], validate_only: bool = False
    ) -> Errors:
        return await self._do(lambda controller: controller.alter_configs(requested, validate_only))

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        return await self._do(lambda controller: controller.elect_leaders(request))

    async def alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return await self._do(lambda controller: controller.alter_reassignments(request))

    async def update_features(self, request: UpdateFeaturesRequest) -> None:
        await self._do(lambda controller: controller.update_features(request))

    async def unregister_broker(self, broker_id: int) -> None:
        await self._do(lambda controller: controller.unregister_broker(broker_id))

    async def auto_create(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Create topics with the broker's defaults, internal ones as they must be; says why not, where it failed.

        Whoever asks has other requests waiting behind this one, so nobody waits long for a store that is away: the
        creation goes on, and those who ask again meanwhile share it.
        """
        clock, wanted = self._clock, tuple(dict.fromkeys(names))
        if wanted not in self._creations:
            task = asyncio.get_running_loop().create_task(self._create_with_defaults(wanted))
            self._creations[wanted] = (task, clock.monotonic() + PATIENCE)
            task.add_done_callback(lambda _: self._creations.pop(wanted, None))
        task, deadline = self._creations[wanted]
        try:
            return await clock.wait_for(asyncio.shield(task), max(deadline - clock.monotonic(), 0))
        except TimeoutError:
            return dict.fromkeys(wanted, ErrorCode.LEADER_NOT_AVAILABLE)

    async def _create_with_defaults(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        node = self._node
        specs = [
            internal_topic(name, node.config, node.lone)
            if name in INTERNAL_TOPICS
            else CreatableTopic(name, -1, -1)
            for name in names
        ]
        try:
            if node.is_controller:
                failed = {
                    each.name: each.error.code for each in await self.create_topics(specs) if each.error
                }
            else:
                reply = await node.ask_controller(CreateTopicsRequest(specs), CREATE_TOPICS_VERSION)
                assert isinstance(reply, CreateTopicsResponse)
                failed = {each.name: ErrorCode(each.error_code) for each in reply.topics if each.error_code}
        except KafkaError:
            # The controller is about to change; the client asks again.
            return dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
        return {
            name: ErrorCode.LEADER_NOT_AVAILABLE if code is ErrorCode.NOT_CONTROLLER else code
            for name, code in failed.items()
            if code is not ErrorCode.TOPIC_ALREADY_EXISTS
        }

    async def allocate_producer_ids(self) -> tuple[int, int]:
        """(first id, how many) of a block of producer ids that belongs to this broker alone."""
        node = self._node
        if node.is_controller:
            return await self._controller().allocate_producer_ids(node.broker_id, node.broker_epoch)
        request = AllocateProducerIdsRequest(node.broker_id, node.broker_epoch)
        reply = await node.ask_controller(request, ALLOCATE_VERSION)
        assert isinstance(reply, AllocateProducerIdsResponse)
        if reply.error_code:
            raise KafkaError(ErrorCode(reply.error_code), "The controller gave out no producer ids.")
        return reply.producer_id_start, reply.producer_id_len

    async def _do(self, operation: Callable[[Controller], Awaitable[T]]) -> T:
        controller = self._controller()
        result = await operation(controller)
        await self._node.until_offset(controller.committed_offset)
        return result

    def _controller(self) -> Controller:
        controller = self._node.controller
        if controller is None or not controller.active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")
        return controller
