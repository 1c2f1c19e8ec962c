"""The cluster's administration as a service, against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.client import Consumer, Producer
from headrace.services import Bootstrap
from headrace.services.administration import Administration, AdministrationApi, AdministrationError


@pytest.fixture
def administration(application: Callable[..., Bootstrap], bootstrap: str) -> AdministrationApi:
    """The service as a consumer sees it, over the wire."""
    provider = application("headrace")
    config = provider.service(Administration(bootstrap), scope="remote")
    provider.start()
    consumer = application("manager")
    return consumer.reference(AdministrationApi, url=config.urls[0].identity, timeout=20_000, retries=0)


def test_topics_are_made_described_changed_and_deleted(administration: AdministrationApi) -> None:
    administration.create_topic("orders", 3, 1, {"retention.ms": "1000"})
    assert "orders" in administration.topics()
    described = administration.describe_topic("orders")
    assert [p.partition for p in described.partitions] == [0, 1, 2]
    assert described.settings["retention.ms"] == "1000"
    administration.add_partitions("orders", 4)
    administration.set_topic("orders", {"retention.ms": "2000"})
    described = administration.describe_topic("orders")
    assert len(described.partitions) == 4
    assert described.settings["retention.ms"] == "2000"
    administration.delete_topic("orders")
    assert "orders" not in administration.topics()


def test_groups_and_their_lag(administration: AdministrationApi, bootstrap: str) -> None:
    administration.create_topic("events", 1)
    with Producer(bootstrap) as producer:
        for number in range(5):
            producer.send_and_wait("events", str(number))
    with Consumer(bootstrap, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("events")
        read: list[Any] = []
        while len(read) < 3:
            read += consumer.poll(1.0, max_records=3 - len(read))
        consumer.commit(read)
        assert administration.describe_group("readers").state == "stable"
    assert "readers" in administration.groups()
    (behind,) = administration.lag("readers")
    assert (behind.topic, behind.committed, behind.end, behind.lag) == ("events", 3, 5, 2)
    (moved,) = administration.reset_group("readers", "events", "earliest")
    assert moved.lag == 5
    administration.delete_group("readers")
    assert "readers" not in administration.groups()


def test_the_clusters_health(administration: AdministrationApi, bootstrap: str) -> None:
    health = administration.health()
    assert health.healthy
    assert [f"{broker.host}:{broker.port}" for broker in health.brokers] == [bootstrap]
    assert health.brokers[0].is_controller
    assert health.under_replicated == health.offline == []


def test_what_the_cluster_refuses_is_one_sentence(administration: AdministrationApi) -> None:
    with pytest.raises(AdministrationError, match="nothing") as raised:
        administration.describe_topic("nothing")
    assert "\n" not in str(raised.value)
    with pytest.raises(AdministrationError, match="earliest or latest"):
        administration.reset_group("g", "t", "yesterday")
