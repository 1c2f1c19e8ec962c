"""The ZooKeeper registry: where its nodes lie, and what happens when sessions or the ensemble are lost."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from headrace.services import URL, Bootstrap, ReferenceConfig, RegistryConfig, RegistryError, RpcException
from headrace.services.registry.base import Registry
from headrace.services.url import decode, encode
from headrace.testing.zookeeper import ZooKeeperServer


def providers(client: KazooClient, registry: RegistryConfig) -> list[str]:
    path = f"/{registry.group}/com.acme.Who/providers"
    return [decode(name) for name in client.get_children(path)] if client.exists(path) else []


def test_nodes_lie_where_dubbo_puts_them(
    who: Any,
    application: Callable[..., Bootstrap],
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
) -> None:
    registry = zookeeper_registry()
    app = who.provide(registry, "a", token="t")
    consumer = application("c", registry=zookeeper_registry())
    consumer.reference(who.interface)
    root = f"/{registry.group}/com.acme.Who"
    assert set(client.get_children(root)) == {"providers", "consumers", "configurators", "routers"}
    (node,) = client.get_children(f"{root}/providers")
    assert client.get(f"{root}/providers/{node}")[1].ephemeralOwner != 0
    url = URL.parse(decode(node))
    assert url.address == app.services[0].urls[0].address
    assert (url.get("interface"), url.get("dynamic"), url.get("token")) == ("com.acme.Who", "true", "t")
    assert not {"bind.ip", "bind.port", "monitor"} & set(url.parameters)
    (consumer_node,) = client.get_children(f"{root}/consumers")
    assert decode(consumer_node).startswith("consumer://")
    consumer.stop()
    assert client.get_children(f"{root}/consumers") == []
    app.stop()
    assert client.get_children(f"{root}/providers") == []


def test_a_static_registration_outlives_its_session(
    who: Any,
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
) -> None:
    registry = zookeeper_registry(dynamic=False)
    who.provide(registry, "a")
    root = f"/{registry.group}/com.acme.Who/providers"
    (node,) = client.get_children(root)
    assert client.get(f"{root}/{node}")[1].ephemeralOwner == 0


def test_a_simplified_registry_is_shown_less(
    who: Any,
    application: Callable[..., Bootstrap],
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
) -> None:
    registry = zookeeper_registry(simplified=True, extra_keys="owner")
    app = application("a", registry=registry)
    app.service(who.named("a"), interface=who.interface, owner="anna", executes=9, timeout=700)
    app.start()
    url = URL.parse(providers(client, registry)[0])
    assert url.get("owner") == "anna"
    assert url.get("timeout") == "700"
    assert not {"executes", "methods", "side", "pid"} & set(url.parameters)


def test_a_lost_session_is_registered_again(
    who: Any,
    application: Callable[..., Bootstrap],
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
    zookeeper: ZooKeeperServer,
    eventually: Callable[..., None],
) -> None:
    registry = zookeeper_registry(parameters={"retry.period": "200"})
    app = who.provide(registry, "a")
    consumer = application("c", registry=zookeeper_registry(parameters={"retry.period": "200"}))
    proxy = consumer.reference(who.interface)
    before = providers(client, registry)
    for each in (app, consumer):
        expire(each, zookeeper)
    eventually(
        lambda: {owner(client, registry, node) for node in providers(client, registry)} == {session(app)}
    )
    assert providers(client, registry) == before
    eventually(lambda: who.is_answered_by_a(proxy))
    who.provide(zookeeper_registry(), "b")
    eventually(lambda: who.answers(proxy) == {"a", "b"})  # its watch works again too


def expire(app: Bootstrap, server: ZooKeeperServer) -> None:
    """End a session as the ensemble would: a second client takes it over and closes it."""
    (registry,) = app.runtime._registries.values()
    kazoo = registry._zk._client  # type: ignore[attr-defined]
    thief = KazooClient(server.connect_string, client_id=kazoo.client_id)
    thief.start()
    thief.stop()
    thief.close()


def session(app: Bootstrap) -> int:
    (registry,) = app.runtime._registries.values()
    return registry._zk.session_id or 0  # type: ignore[attr-defined, no-any-return]


def owner(client: KazooClient, registry: RegistryConfig, node: str) -> int:
    path = f"/{registry.group}/com.acme.Who/providers/{encode(node)}"
    found = client.exists(path)
    return found.ephemeralOwner if found else 0


def test_who_wants_to_know_of_everything_goes_on_hearing_it_after_a_lost_session(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        watcher, other = application("watcher"), application("other")
        told: dict[str, set[int]] = {}

        class Listener:
            async def notify(self, urls: list[URL]) -> None:
                told[urls[0].interface] = {url.port for url in urls}

        async def registry(app: Bootstrap) -> Registry:
            return await app.runtime.registry(URL.parse(f"zookeeper://{server.connect_string}?session=2000"))

        async def watch() -> None:
            everything = {"interface": "*", "group": "*", "version": "*", "category": "providers"}
            await (await registry(watcher)).subscribe(
                URL("consumer", "127.0.0.1", 0, "*", everything), Listener()
            )

        async def register(port: int, name: str) -> None:
            await (await registry(other)).register(URL("dubbo", "127.0.0.1", port, name))

        watcher.runtime.run(watch())
        other.runtime.run(register(1, "com.acme.A"))
        eventually(lambda: told.get("com.acme.A") == {1})
        first = session(watcher)
        expire(watcher, server)
        eventually(lambda: session(watcher) not in (0, first))
        other.runtime.run(register(2, "com.acme.A"))
        other.runtime.run(register(3, "com.acme.B"))
        eventually(lambda: told == {"com.acme.A": {1, 2}, "com.acme.B": {3}})


def test_an_ensemble_that_is_away_does_not_stop_calls(
    who: Any, application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        registry = RegistryConfig(
            address=f"zookeeper://{server.connect_string}", session=2000, parameters={"retry.period": "200"}
        )
        who.provide(registry, "a")
        proxy = application("c", registry=registry).reference(who.interface)
        server.kill()
        assert proxy.who() == "a"
        late = application(
            "late", registry=RegistryConfig(address=registry.address, check=False, timeout=100)
        )
        late.service(who.named("late"), interface=who.interface)
        late.start()  # registers as soon as it can
        server.start()
        eventually(lambda: who.answers(proxy) == {"a", "late"}, seconds=40)


def test_a_handshake_that_is_not_answered_is_tried_again(
    who: Any,
    application: Callable[..., Bootstrap],
    zookeeper: ZooKeeperServer,
    eventually: Callable[..., None],
) -> None:
    """A server that is just starting does this to some of its clients."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def swallow_one_and_carry_the_rest() -> None:
            with contextlib.suppress(OSError), listener.accept()[0]:
                while True:
                    carry(listener.accept()[0], socket.create_connection(("127.0.0.1", zookeeper.port)))

        threading.Thread(target=swallow_one_and_carry_the_rest, daemon=True).start()
        address = f"zookeeper://127.0.0.1:{listener.getsockname()[1]}"
        late = application("late", registry=RegistryConfig(address=address, check=False, timeout=100))
        late.service(who.named("late"), interface=who.interface)
        late.start()
        eventually(lambda: session(late), seconds=40)


def carry(*ends: socket.socket) -> None:
    """Carry bytes both ways between two connections until either closes."""

    def one_way(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError), source, target:
            while piece := source.recv(4096):
                target.sendall(piece)

    for source, target in (ends, reversed(ends)):
        threading.Thread(target=one_way, args=(source, target), daemon=True).start()


@pytest.mark.parametrize(
    ("leave", "come_back"),
    [
        (ZooKeeperServer.kill, ZooKeeperServer.start),
        (ZooKeeperServer.pause, ZooKeeperServer.resume),
    ],
)
def test_a_reference_let_go_while_the_ensemble_is_away_does_not_come_back(
    who: Any,
    application: Callable[..., Bootstrap],
    tmp_path: Path,
    eventually: Callable[..., None],
    leave: Callable[[ZooKeeperServer], None],
    come_back: Callable[[ZooKeeperServer], None],
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        registry = RegistryConfig(address=f"zookeeper://{server.connect_string}", session=2000)
        who.provide(registry, "a")
        consumer = application("c", registry=registry)
        gone, kept = (
            ReferenceConfig(interface=who.interface, runtime=consumer.runtime, parameters={"mark": mark})
            for mark in ("gone", "kept")
        )
        assert gone.get().who() == kept.get().who() == "a"
        leave(server)
        gone.destroy()
        come_back(server)
        eventually(lambda: marks_in(server) == {"kept"}, seconds=40)


def marks_in(server: ZooKeeperServer) -> set[str]:
    """The `mark` of each consumer that the ensemble has."""
    kazoo = KazooClient(server.connect_string)
    kazoo.start()
    try:
        nodes = kazoo.get_children("/dubbo/com.acme.Who/consumers")
        return {URL.parse(decode(node)).get("mark") for node in nodes}
    finally:
        kazoo.stop()
        kazoo.close()


def test_calls_go_on_while_everybody_registers_again(
    who: Any, application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        registry = RegistryConfig(address=f"zookeeper://{server.connect_string}", session=2000)
        app = who.provide(registry, "a")
        consumer = application("c", registry=registry)
        proxy = consumer.reference(who.interface)
        first = session(consumer)
        expire(consumer, server)  # the consumer comes back first, and the provider's node …
        expire(app, server)  # … is away for a moment
        failures = []

        def call() -> bool:
            try:
                proxy.who()
            except RpcException as error:
                failures.append(error)
            return session(app) != 0 and session(consumer) not in (0, first)

        eventually(call)
        eventually(lambda: server_has_provider(server))
        assert failures == []
        app.stop()
        eventually(lambda: not who.is_answered_by_a(proxy))  # in the end an empty registry is believed


def server_has_provider(server: ZooKeeperServer) -> bool:
    kazoo = KazooClient(server.connect_string)
    kazoo.start()
    try:
        return bool(providers(kazoo, RegistryConfig(group="dubbo")))
    finally:
        kazoo.stop()
        kazoo.close()


def test_an_ensemble_that_does_not_answer_is_one_sentence(
    who: Any, application: Callable[..., Bootstrap]
) -> None:
    registry = RegistryConfig(address="zookeeper://127.0.0.1:1", timeout=200)
    app = application("a", registry=registry)
    config = app.service(who.named("a"), interface=who.interface)
    with pytest.raises(
        RegistryError, match=r"the ZooKeeper registry at 127\.0\.0\.1:1 does not answer within 0\.2 s"
    ):
        app.start()
    assert not config.exported
