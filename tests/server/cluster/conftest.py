"""Shared parts of the cluster's tests: images made by hand, and brokers on an embedded store in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import pytest

from headrace.server.cluster.changes import BrokerChanged
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import Broker, MetadataImage
from tests.server.cluster.nodes import Cluster, endpoint


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


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(tmp_path / "cluster.db")
    await made.open()
    yield made
    await made.close()
