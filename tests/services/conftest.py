"""What the service tests share: one ZooKeeper a session, and applications that are stopped after their test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.services import Bootstrap, Environment, ProtocolConfig, RegistryConfig, Runtime
from headrace.testing.zookeeper import ZooKeeperServer


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

    def wait(condition: Callable[[], object], seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition never held"
            time.sleep(0.02)

    return wait
