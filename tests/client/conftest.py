"""What the client's tests share: a cluster and topics; real Redis and MariaDB are in the conftest above.

HEADRACE_TEST_BOOTSTRAP names another cluster to test against, such as an Apache Kafka.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterator

import pytest

from headrace.client import Admin, Record
from headrace.client.scan import scan
from headrace.testing.broker import BrokerThread
from tests.waiting import until


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = os.environ.get("HEADRACE_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    settings = {"group.initial.rebalance.delay.ms": "0"}
    broker = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    yield broker.bootstrap
    broker.stop()


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap) as admin:
        yield admin


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until something is so. Apache Kafka tells of new topics, and of the offsets of a transaction, a moment later."""
    return until


@pytest.fixture
def new_topic(admin: Admin, eventually: Callable[[Callable[[], bool]], None]) -> Callable[..., str]:
    def make(partitions: int = 1, **config: str) -> str:
        name = f"test-{uuid.uuid4().hex[:12]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        settings.setdefault("retention.ms", "-1")  # records of 1970 shall stay
        admin.create_topic(name, partitions=partitions, replication_factor=1, config=settings)
        eventually(lambda: name in admin.topics())
        return name

    return make


@pytest.fixture
def read_all(bootstrap: str, admin: Admin) -> Callable[..., list[Record]]:
    """Everything a topic holds now, without a group."""

    def read(topic: str, isolation_level: str = "read_committed") -> list[Record]:
        starts = dict.fromkeys(admin.partitions_of(topic))
        return list(scan({"bootstrap.servers": bootstrap}, starts, isolation_level=isolation_level))

    return read


@pytest.fixture
def silent_broker() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"
