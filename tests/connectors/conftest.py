"""What the connectors' tests share: a broker, topics, a local Spark, and connectors declared and run in a line."""

from __future__ import annotations

import time
import uuid

import pytest

from headrace.client import Admin
from headrace.client.scan import scan
from headrace.testing.broker import BrokerThread


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory):
    broker = BrokerThread(
        tmp_path_factory.mktemp("broker"), {"group.initial.rebalance.delay.ms": "0"}
    ).start()
    yield broker.bootstrap
    broker.stop()


@pytest.fixture(scope="session")
def admin(bootstrap):
    with Admin(bootstrap) as admin:
        yield admin


@pytest.fixture
def new_topic(admin):
    def make(partitions=1):
        name = f"test-{uuid.uuid4().hex[:12]}"
        admin.create_topic(name, partitions=partitions, replication_factor=1)
        return name

    return make


@pytest.fixture
def read_all(bootstrap, admin):
    """Everything a topic holds now that is committed."""

    def read(topic):
        starts = dict.fromkeys(admin.partitions_of(topic))
        return list(scan({"bootstrap.servers": bootstrap}, starts, isolation_level="read_committed"))

    return read


@pytest.fixture
def eventually():
    """Wait until something is so, and fail when it is not within a minute."""

    def wait(is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline, "it did not come about within 60 s"
            time.sleep(0.02)

    return wait
