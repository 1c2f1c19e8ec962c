"""Brokers whose store is elsewhere: in ZooKeeper, or with the supervisor of their machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headrace.clock import SystemClock
from headrace.server.cluster.decisions import create_topics
from headrace.server.cluster.embedded import EmbeddedStore
from headrace.server.cluster.image import Endpoint
from headrace.server.cluster.join import join
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.registration import Registration
from headrace.server.cluster.remote import RemoteStore
from headrace.server.cluster.store import SessionState, StoreError, UnavailableError
from headrace.server.cluster.store_server import StoreServer
from headrace.server.config.broker import BrokerConfig
from headrace.testing.zookeeper import ZooKeeperServer
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableTopic

Start = Callable[[int], Awaitable[ClusterNode]]
SESSION_MS = 3000


async def start_node(broker_id: int, settings: dict[str, str], **more: Any) -> ClusterNode:
    endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id, "PLAINTEXT"),)
    registration = Registration(broker_id, endpoints, f"disk-{broker_id}", **more)
    config = BrokerConfig.load({"zookeeper.session.timeout.ms": str(SESSION_MS), **settings})
    return await asyncio.wait_for(join(config, registration, SystemClock()), 30)


async def controller_among(*nodes: ClusterNode) -> ClusterNode:
    """The controller, once one of these brokers is it and knows."""

    async def find() -> ClusterNode:
        while True:
            for node in nodes:
                held = node.controller
                if held is not None and held.active and node.image.controller_epoch == held.epoch:
                    return node
            await asyncio.sleep(0.02)

    return await asyncio.wait_for(find(), 30)


async def create(node: ClusterNode, name: str, partitions: int, factor: int) -> None:
    assert node.controller is not None
    (result,) = await asyncio.wait_for(
        node.decide(create_topics([CreatableTopic(name, partitions, factor)])), 30
    )
    assert result.error is None, result.error


async def create_in_the_end(name: str, *nodes: ClusterNode) -> None:
    """As a client does: ask the current controller, and retry if it has changed by the time it answers."""
    while True:
        controller = await controller_among(*nodes)
        try:
            (result,) = await asyncio.wait_for(
                controller.decide(create_topics([CreatableTopic(name, 1, 1)])), 30
            )
        except KafkaError:
            continue
        assert result.error is None or result.error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        return


async def see(node: ClusterNode, condition: Callable[[Any], bool]) -> None:
    await asyncio.wait_for(node.until(condition), 30)


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(params=["supervisor", "zookeeper"])
async def start(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Start]:
    nodes: list[ClusterNode] = []
    if request.param == "zookeeper":
        server = request.getfixturevalue("zookeeper")
        settings = {"zookeeper.connect": f"{server.connect_string}/{tmp_path.name}"}
    else:
        store = await EmbeddedStore.open(tmp_path / "cluster.db")
        supervisor = StoreServer(store, tmp_path / "s", SESSION_MS / 1000, SystemClock())
        await supervisor.start()
        settings = {"headrace.store": str(tmp_path / "s")}

    async def begin(broker_id: int) -> ClusterNode:
        nodes.append(await start_node(broker_id, settings))
        return nodes[-1]

    yield begin
    for node in nodes:
        await node.stop()
    if request.param == "supervisor":
        await supervisor.stop()
        await store.close()


async def test_brokers_make_one_cluster_with_one_controller(start: Start) -> None:
    nodes = [await start(broker_id) for broker_id in (1, 2, 3)]
    controller = await controller_among(*nodes)
    await create(controller, "orders", 6, 3)
    for node in nodes:
        await see(node, lambda image: "orders" in image.topics)
    await see(nodes[0], lambda image: len([each for each in image.brokers.values() if each.active]) == 3)
    assert len({node.image.cluster_id for node in nodes}) == 1
    assert sum(node.controller is not None for node in nodes) == 1
    assert not controller.standalone


async def test_when_the_controller_goes_another_broker_is_elected_and_leaders_move(start: Start) -> None:
    nodes = [await start(broker_id) for broker_id in (1, 2, 3)]
    old = await controller_among(*nodes)
    await create(old, "orders", 6, 3)
    epoch = old.controller.epoch if old.controller is not None else 0
    await old.stop()
    rest = [node for node in nodes if node is not old]
    new = await controller_among(*rest)
    assert new.controller is not None
    assert new.controller.epoch > epoch
    for node in rest:
        await see(node, lambda image: image.brokers[old.broker_id].fenced)
        for partition in node.image.topics["orders"].partitions:
            assert partition.leader != old.broker_id
            assert set(partition.isr) == {each.broker_id for each in rest}


async def test_a_broker_that_hangs_loses_its_session_and_comes_back(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    """kazoo pings from its own thread; the watchdog ends the session all the same."""
    settings = {"zookeeper.connect": f"{zookeeper.connect_string}/{tmp_path.name}"}
    node = await start_node(1, settings)
    epoch, session = node.broker_epoch, node._store.session_id
    states: list[SessionState] = []
    node._store.on_session(states.append)
    time.sleep(SESSION_MS / 1000)  # noqa: ASYNC251 - the loop hangs, which is the point
    await see(node, lambda image: image.brokers[1].epoch > epoch and image.brokers[1].active)
    assert SessionState.EXPIRED in states
    assert node._store.session_id != session
    await create_in_the_end("after", node)
    await node.stop()


async def test_brokers_keep_their_image_while_zookeeper_is_away(tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        settings = {"zookeeper.connect": server.connect_string}
        first, second = await start_node(1, settings), await start_node(2, settings)
        controller = await controller_among(first, second)
        await create(controller, "before", 2, 2)
        await asyncio.to_thread(server.kill)
        assert "before" in first.image.topics
        await asyncio.to_thread(server.start)
        await create_in_the_end("after", first, second)
        for node in (first, second):
            await see(node, lambda image: "after" in image.topics)
        await first.stop()
        await second.stop()


async def test_an_expired_session_is_replaced_and_the_controller_steps_down(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    settings = {"zookeeper.connect": f"{zookeeper.connect_string}/{tmp_path.name}"}
    first, second = await start_node(1, settings), await start_node(2, settings)
    old = await controller_among(first, second)
    await create(old, "orders", 2, 2)
    term = old.controller
    assert term is not None
    await expire(old, zookeeper)
    for node in (first, second):
        await see(
            node,
            lambda image: image.controller_epoch > term.epoch and image.brokers[old.broker_id].active,
        )
    assert not term.active
    await create_in_the_end("after", first, second)
    await first.stop()
    await second.stop()


async def expire(node: ClusterNode, zookeeper: ZooKeeperServer) -> None:
    """End a session from outside, as ZooKeeper does: take it over from another connection and close it there."""
    from kazoo.client import KazooClient

    client_id = node._store._client.client_id  # type: ignore[attr-defined]
    thief = KazooClient(zookeeper.connect_string, client_id=client_id, timeout=SESSION_MS / 1000)
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    thief.close()


async def test_a_supervisor_that_restarts_finds_its_brokers_again(tmp_path: Path) -> None:
    async def supervise() -> tuple[EmbeddedStore, StoreServer]:
        store = await EmbeddedStore.open(tmp_path / "cluster.db")
        server = StoreServer(store, tmp_path / "s", 3.0, SystemClock())
        await server.start()
        return store, server

    store, server = await supervise()
    node = await start_node(1, {"headrace.store": str(tmp_path / "s")})
    await create(node, "before", 1, 1)
    epoch = node.broker_epoch
    await server.stop()
    await store.close()
    assert "before" in node.image.topics
    store, server = await supervise()
    await see(node, lambda image: image.brokers[1].epoch > epoch and image.brokers[1].active)
    await create_in_the_end("after", node)
    await node.stop()
    await server.stop()
    await store.close()


def test_a_connection_that_has_just_ended_makes_the_store_unavailable(tmp_path: Path) -> None:
    """On the brokers' event loop (uvloop), which raises its own error for a write to a closed connection."""

    async def ask() -> None:
        store = await EmbeddedStore.open(tmp_path / "cluster.db")
        server = StoreServer(store, tmp_path / "s", 3.0, SystemClock())
        await server.start()
        remote = await RemoteStore.open(tmp_path / "s", 3.0, SystemClock())
        assert remote._writer is not None
        remote._tasks[0].cancel()  # the reading task has not noticed yet
        remote._writer.transport.abort()
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(UnavailableError):
            await remote.get("/metadata")
        await remote.close()
        await server.stop()
        await store.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ask())


async def test_a_store_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="headrace up --brokers N"):
        await start_node(1, {"headrace.store": str(tmp_path / "nobody")})
    with pytest.raises(StoreError, match=r"a broker without zookeeper\.connect runs"):
        await start_node(1, {"zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": "300"})
