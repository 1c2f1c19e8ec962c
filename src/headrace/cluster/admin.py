"""What handlers ask of the controller. An answer is given once this broker's own image shows what was changed."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from headrace.cluster.config_changes import ConfigOp, Errors
from headrace.cluster.controller import Controller
from headrace.cluster.image import ConfigResource, MetadataImage
from headrace.cluster.internal_topics import INTERNAL_TOPICS, internal_topic
from headrace.cluster.topics import CreatedTopic
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from headrace.wire.messages.create_topics import CreatableTopic

if TYPE_CHECKING:
    from headrace.cluster.node import ClusterNode

T = TypeVar("T")


class Admin:
    """Operations of the controller, from the broker that `node` is. NOT_CONTROLLER when another broker is the controller."""

    def __init__(self, node: ClusterNode) -> None:
        self._node = node

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

    async def auto_create(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Create topics with the broker's defaults, internal ones as they must be; says why not, where it failed."""
        node = self._node
        specs = [
            internal_topic(name, node.config, node.lone)
            if name in INTERNAL_TOPICS
            else CreatableTopic(name, -1, -1)
            for name in dict.fromkeys(names)
        ]
        try:
            created = await self.create_topics(specs)
        except KafkaError:
            # The controller is elsewhere or about to change; the client asks again.
            return dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
        return {
            result.name: result.error.code
            for result in created
            if result.error is not None and result.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS
        }

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
