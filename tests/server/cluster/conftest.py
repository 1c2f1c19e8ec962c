"""Shared parts of the cluster's tests: images made by hand, and brokers on an embedded store in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster.changes import BrokerChanged
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.embedded import EmbeddedStore
from headrace.server.cluster.image import Broker, Endpoint, MetadataImage
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.registration import Registration
from headrace.server.config.broker import BrokerConfig


def endpoint(broker_id: int) -> Endpoint:
    return Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id, "PLAINTEXT")


def make_broker(broker_id: int, rack: str | None = None, host: str | None = None, **more: bool) -> Broker:
    return Broker(broker_id, 100 + broker_id, (endpoint(broker_id),), rack, host, **more)


@pytest.fixture
def broker() -> Callable[..., Broker]:
    return make_broker


@pytest.fixture
def image_of() -> Callable[[Iterable[Broker]], MetadataImage]:
    def make(brokers: Iterable[Broker]) -> MetadataImage:
        return apply_changes(MetadataImage(), 0, [BrokerChanged(broker) for broker in brokers])

    return make


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


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(tmp_path / "cluster.db")
    await made.open()
    yield made
    await made.close()
