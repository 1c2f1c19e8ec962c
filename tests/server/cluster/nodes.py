"""Brokers on an embedded store in this process, without anything but their part of the cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headrace.clock import SystemClock
from headrace.server.cluster.decisions import create_topics
from headrace.server.cluster.embedded import EmbeddedStore
from headrace.server.cluster.image import Endpoint
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.registration import Registration
from headrace.server.config.broker import BrokerConfig
from headrace.wire.messages.create_topics import CreatableTopic


def endpoint(broker_id: int) -> Endpoint:
    return Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id, "PLAINTEXT")


class Cluster:
    """Several brokers of one process on one embedded store."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.nodes: dict[int, ClusterNode] = {}
        self.store: EmbeddedStore | None = None

    async def open(self) -> None:
        self.store = await EmbeddedStore.open(self.path)

    async def start(
        self, broker_id: int, settings: dict[str, str] | None = None, **more: object
    ) -> ClusterNode:
        assert self.store is not None
        registration = Registration(broker_id, (endpoint(broker_id),), f"disk-{broker_id}", **more)  # type: ignore[arg-type]
        node = ClusterNode(
            self.store.connect(), registration, BrokerConfig.load(settings or {}), SystemClock()
        )
        await asyncio.wait_for(node.start(), 20)
        self.nodes[broker_id] = node
        return node

    async def stop(self, broker_id: int) -> None:
        await self.nodes.pop(broker_id).stop()

    @property
    def controller(self) -> ClusterNode:
        """The broker that is the controller now."""
        return next(
            node for node in self.nodes.values() if node.controller is not None and node.controller.active
        )

    async def elected(self) -> ClusterNode:
        """The controller, once every broker knows the same live one."""

        async def settle() -> ClusterNode:
            while True:
                for node in self.nodes.values():
                    controller = node.controller
                    if controller is None or not controller.active:
                        continue
                    if node.image.controller_epoch == controller.epoch:
                        return node
                await asyncio.sleep(0.005)

        return await asyncio.wait_for(settle(), 20)

    async def settled(self) -> None:
        """Wait until every broker has seen the latest change."""
        node = await self.elected()
        assert node.controller is not None
        offset = node.controller.image.offset
        for each in self.nodes.values():
            await asyncio.wait_for(each.until_offset(offset), 20)

    async def close(self) -> None:
        for broker_id in list(self.nodes):
            await self.stop(broker_id)
        if self.store is not None:
            await self.store.close()


async def create(node: ClusterNode, name: str, partitions: int = 1, replication: int = 1) -> None:
    assert node.controller is not None
    wanted = CreatableTopic(name, partitions, replication)
    (created,) = await node.controller.decide(create_topics([wanted]))
    assert created.error is None, created.error
