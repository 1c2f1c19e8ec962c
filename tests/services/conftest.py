"""What the service tests share: one ZooKeeper a session, and applications that are stopped after their test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from headrace.services import (
    Bootstrap,
    Environment,
    ProtocolConfig,
    RegistryConfig,
    RpcException,
    Runtime,
    interface,
)
from headrace.testing.zookeeper import ZooKeeperServer
from tests.waiting import until


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def zookeeper_registry(zookeeper: ZooKeeperServer) -> Callable[[], RegistryConfig]:
    """A registry in the shared ZooKeeper; a group of its own keeps tests apart."""
    group = f"dubbo-{time.monotonic_ns()}"

    def make(**settings: Any) -> RegistryConfig:
        settings.setdefault("group", group)
        return RegistryConfig(address=f"zookeeper://{zookeeper.connect_string}", session=2000, **settings)

    return make


@pytest.fixture
def client(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """Somebody else's view of the shared ZooKeeper."""
    kazoo = KazooClient(zookeeper.connect_string)
    kazoo.start()
    yield kazoo
    kazoo.stop()
    kazoo.close()


@pytest.fixture(params=["zookeeper", "embedded"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., RegistryConfig]:
    """Both kinds of registry promise the same."""
    if request.param == "zookeeper":
        made: Callable[..., RegistryConfig] = request.getfixturevalue("zookeeper_registry")
        return made
    return lambda **settings: RegistryConfig(address=f"embedded://{tmp_path}/registry", **settings)


@pytest.fixture
def runtime() -> Iterator[Callable[..., Runtime]]:
    """Runtimes that know nothing of this machine's environment and end at once."""
    made: list[Runtime] = []

    def make(properties: dict[str, str] | None = None, variables: dict[str, str] | None = None) -> Runtime:
        settings = {"dubbo.service.shutdown.wait": "0", **(properties or {})}
        made.append(Runtime(Environment(properties=settings, variables=variables or {})))
        return made[-1]

    yield make
    for each in reversed(made):
        each.shutdown()


@pytest.fixture
def application(runtime: Callable[..., Runtime]) -> Callable[..., Bootstrap]:
    """Applications on loopback and a free port."""

    def make(
        name: str = "app",
        properties: dict[str, str] | None = None,
        variables: dict[str, str] | None = None,
        **settings: Any,
    ) -> Bootstrap:
        settings.setdefault("protocol", ProtocolConfig(name="dubbo", host="127.0.0.1", port=-1))
        return Bootstrap(name, runtime=runtime(properties, variables), **settings)

    return make


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until a condition holds; fail with what it was if it never does."""
    return until


@interface("com.acme.Who")
class Who:
    def who(self) -> str: ...  # type: ignore[empty-body]


class Named(Who):
    def __init__(self, name: str) -> None:
        self.name = name

    def who(self) -> str:
        return self.name


class WhoService:
    """A service whose providers answer with their names, so that a caller sees whom it reached."""

    interface = Who
    named = Named

    def __init__(self, application: Callable[..., Bootstrap]) -> None:
        self._application = application

    def provide(self, registry: object, name: str, **settings: object) -> Bootstrap:
        app = self._application(name, registry=registry)
        app.service(Named(name), interface=Who, **settings)
        return app.start()

    def answers(self, proxy: Who, count: int = 40) -> set[str]:
        """Who answers; a call that finds nobody is one of the answers."""

        def ask() -> str:
            try:
                return proxy.who()
            except RpcException:
                return "nobody"

        return {ask() for _ in range(count)}

    def is_answered_by_a(self, proxy: Who) -> bool:
        return self.answers(proxy, 1) == {"a"}


@pytest.fixture
def who(application: Callable[..., Bootstrap]) -> WhoService:
    return WhoService(application)
