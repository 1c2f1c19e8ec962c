"""The pytest plugin: brokers, clusters and topics as fixtures (docs/testing.md).

Installed with Headrace and loaded by every pytest run, so it imports nothing until a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from headrace.testing.broker import BrokerThread
    from headrace.testing.cluster import Cluster
    from headrace.testing.registry import RegistryThread

BROKERS = 3
SETTINGS = {"group.initial.rebalance.delay.ms": 0}
"""What differs from Kafka's defaults: a test seldom has more members to wait for."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "headrace(settings={...}, brokers=3, login={...}): settings for headrace_broker and headrace_cluster, the cluster's size, and "
        "a client's settings of TLS and SASL.",
    )


@pytest.fixture
def headrace_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerThread]:
    """A real broker in this process, for this test alone: `bootstrap`, `faults`, `disk`, `clock`, `kill()`, `start()`."""
    from headrace.testing.broker import BrokerThread

    marked = _Marked(request)
    with BrokerThread(tmp_path_factory.mktemp("headrace"), marked.settings, login=marked.login) as broker:
        yield broker


@pytest.fixture
def headrace_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster[BrokerThread]]:
    """Three brokers in this process, or as many as the marker says; `cluster[2].kill()` kills one."""
    from headrace.testing.cluster import threads

    marked = _Marked(request)
    home = tmp_path_factory.mktemp("headrace")
    with threads(home, marked.brokers, marked.settings, login=marked.login) as cluster:
        yield cluster


@pytest.fixture
def headrace_registry(request: pytest.FixtureRequest) -> Iterator[RegistryThread]:
    """A schema registry beside the test's broker, or its cluster: `url`."""
    from headrace.testing.registry import RegistryThread

    used = "headrace_cluster" if "headrace_cluster" in request.fixturenames else "headrace_broker"
    home = request.getfixturevalue(used)
    with RegistryThread(home.bootstrap) as registry:
        yield registry


@pytest.fixture
def headrace_topic(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes topics: `headrace_topic(partitions=3, config={...})` returns a name that no other test has.

    They are made on the cluster when the test uses `headrace_cluster`, else on `headrace_broker`.
    """
    from headrace.testing.topics import unique_name

    used = "headrace_cluster" if "headrace_cluster" in request.fixturenames else "headrace_broker"
    home = request.getfixturevalue(used)

    def make(name: str | None = None, partitions: int = 1, **options: Any) -> str:
        topic: str = home.create_topic(name or unique_name(request.node.name), partitions, **options)
        return topic

    return make


class _Marked:
    """What the `headrace` markers of the test, its class and its module say; the nearest wins."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.settings: dict[str, object] = dict(SETTINGS)
        self.login: dict[str, str] = {}
        self.brokers = BROKERS
        for marker in reversed(list(request.node.iter_markers("headrace"))):
            unknown = set(marker.kwargs) - {"settings", "brokers", "login"}
            if marker.args or unknown:
                raise pytest.UsageError(
                    "The headrace marker takes settings={...}, brokers=N and login={...}, nothing else."
                )
            self.settings |= marker.kwargs.get("settings", {})
            self.login |= marker.kwargs.get("login", {})
            self.brokers = marker.kwargs.get("brokers", self.brokers)
