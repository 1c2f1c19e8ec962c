"""kazoo runs its own threads; a broker whose kazoo loses one gets a new session."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster.decisions import create_topics
from headrace.server.cluster.image import Endpoint
from headrace.server.cluster.join import join
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.registration import Registration
from headrace.server.config.broker import BrokerConfig
from headrace.testing.zookeeper import ZooKeeperServer
from headrace.wire.messages.create_topics import CreatableTopic

STRAY_ANSWER = struct.pack(">iiqi", 16, 987_654, 0, 0)
"""The header of a reply to a request that was never sent."""


class Meddler:
    """A proxy between brokers and ZooKeeper that can inject replies."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._to_brokers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def say(self, data: bytes) -> None:
        for writer in self._to_brokers:
            writer.write(data)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._to_brokers.add(writer)
        for source, target in ((reader, back), (there, writer)):
            pump = asyncio.create_task(self._pump(source, target))
            self._pumps.add(pump)
            pump.add_done_callback(lambda _: self._to_brokers.discard(writer))

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                target.write(data)
        except OSError:
            pass
        finally:
            target.close()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
async def meddler(zookeeper: ZooKeeperServer) -> AsyncIterator[Meddler]:
    made = Meddler(zookeeper.port)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def node(meddler: Meddler, tmp_path: Path) -> AsyncIterator[ClusterNode]:
    config = BrokerConfig.load({"zookeeper.connect": f"127.0.0.1:{meddler.port}/{tmp_path.name}"})
    endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", 9001, "PLAINTEXT"),)
    made = await asyncio.wait_for(join(config, Registration(1, endpoints, "disk"), SystemClock()), 60)
    yield made
    await made.stop()


def _end_thread() -> None:
    raise SystemExit


async def stray_answer(meddler: Meddler, node: ClusterNode) -> None:
    meddler.say(STRAY_ANSWER)


async def end_completions(meddler: Meddler, node: ClusterNode) -> None:
    store: Any = node._store
    store._client.handler.completion_queue.put(_end_thread)


async def end_watches(meddler: Meddler, node: ClusterNode) -> None:
    store: Any = node._store
    store._client.handler.callback_queue.put(_end_thread)


@pytest.mark.parametrize("lose_a_thread", [stray_answer, end_completions, end_watches])
async def test_a_broker_whose_kazoo_loses_a_thread_registers_again(
    meddler: Meddler, node: ClusterNode, lose_a_thread: Callable[[Meddler, ClusterNode], Awaitable[None]]
) -> None:
    epoch, term = node.broker_epoch, node.image.controller_epoch
    await lose_a_thread(meddler, node)
    await asyncio.wait_for(node.until(lambda image: image.brokers[1].epoch > epoch and image.active(1)), 60)
    assert node.broker_epoch == node.image.brokers[1].epoch
    await asyncio.wait_for(node.until(lambda image: image.controller_epoch > term), 60)
    (created,) = await asyncio.wait_for(node.decide(create_topics([CreatableTopic("after", 1, 1)])), 60)
    assert created.error is None
    assert "after" in node.image.topics
