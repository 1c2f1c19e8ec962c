"""`headrace clients`: who is connected to any broker, found through the brokers' settings or by address."""

from __future__ import annotations

import json
import socket

import pytest
from confluent_kafka import Producer

from headrace.testing import cluster as testing
from headrace.testing.broker import BrokerThread
from tests.server.clients import messages
from tests.server.telemetry.conftest import TelemetryWire, alter, counter


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    """Two brokers that tell who their clients are."""
    cluster = testing.threads(
        tmp_path_factory.mktemp("cluster"), 2, {"headrace.metrics.listener": "127.0.0.1:0"}
    )
    alter(cluster[1].bootstrap, "all", metrics="*", interval_ms="60000")
    yield cluster
    cluster.stop()


@pytest.fixture
def bootstrap(brokers):
    return brokers.bootstrap


@pytest.fixture
def seller(brokers, name):
    """A producer that is connected to both brokers."""
    producer = Producer(
        {
            "bootstrap.servers": brokers.bootstrap,
            "client.id": name,
            "log_level": 0,
            "enable.metrics.push": False,
        }
    )
    testing.create_topic(brokers.bootstrap, name, partitions=4)
    for partition in range(4):
        producer.produce(name, b"x" * 1000, partition=partition)
    assert producer.flush(60) == 0
    return producer


def addresses(brokers):
    return [f"127.0.0.1:{brokers[each].node.metrics_address[1]}" for each in (1, 2)]


def test_a_client_of_two_brokers_is_one_row(headrace, seller, name):
    (found,) = [each for each in headrace("clients", "list", "--json").json if each["client_id"] == name]
    assert found["brokers"] == [1, 2]
    assert (found["principal"], found["address"]) == ("User:ANONYMOUS", "127.0.0.1")
    assert found["software_name"] == "confluent-kafka-python"
    assert found["bytes_in"] > 4000
    assert found["requests"] == sum(each["requests"] for each in found["connections"])
    head, *rows = headrace("clients", "list").lines
    assert head.split()[:3] == ["CLIENT", "ID", "PRINCIPAL"]
    assert any(row.startswith(f"{name} ") and " 1,2 " in row for row in rows)


def test_a_client_is_described_with_its_connections_and_its_last_push(headrace, brokers):
    with TelemetryWire(brokers[1].bootstrap) as wire:
        told = wire.subscriptions()
        assert wire.push(told, counter("org.sent", 12345, node="7")) == 0
        shown = headrace("clients", "describe", "wire-test")
        assert shown.code == 0, shown.err
        assert "Software:   test-client 1.2.3" in shown.lines
        assert any(line.split() == ["org.sent", "node=7", "12,345"] for line in shown.lines)
        (found,) = headrace("clients", "describe", "wire-test", "--json").json
        (telemetry,) = found["telemetry"]
        assert telemetry["values"][0]["value"] == 12345
        again = headrace("clients", "describe", telemetry["client_instance_id"], "--json").json
        assert again[0]["client_id"] == "wire-test"


def test_a_client_that_is_not_there_is_named_with_the_nearest_one(headrace, seller, name):
    ran = headrace("clients", "describe", name[:-1])
    assert ran.code == 1
    assert f"Did you mean '{name}'?" in ran.err


def test_addresses_can_be_named(headrace, brokers, seller, name):
    ran = headrace("clients", "list", "--json", "--metrics", addresses(brokers)[1])
    (found,) = [each for each in ran.json if each["client_id"] == name]
    assert found["brokers"] == [2]


def test_a_broker_that_does_not_answer_is_left_out_and_named(headrace, brokers, seller, name):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        silent = f"127.0.0.1:{free.getsockname()[1]}"
    ran = headrace("clients", "list", "--json", "--metrics", f"{addresses(brokers)[0]},{silent}")
    assert ran.code == 0
    assert name in [each["client_id"] for each in ran.json]
    assert f"left out: {silent} does not answer" in ran.err
    ran = headrace("clients", "list", "--metrics", silent)
    assert ran.code == 1
    assert f"No broker says who its clients are: {silent} does not answer" in ran.err


@pytest.mark.parametrize("metrics", ["here", "host:0", "host:1:x", ":"])
def test_an_address_that_is_none_is_refused(headrace, metrics):
    ran = headrace("clients", "list", "--metrics", metrics)
    assert ran.code == 2
    assert "--metrics takes HOST:PORT,…" in ran.err


def test_a_cluster_that_does_not_tell_is_answered_with_what_to_do(headrace, tmp_path):
    with BrokerThread(tmp_path / "silent") as broker:
        ran = headrace("clients", "list", "-b", broker.bootstrap)
    assert ran.code == 1
    assert "start the brokers with --metrics (or set headrace.metrics.listener=HOST:PORT)" in ran.err


def test_top_takes_addresses_too(headrace, brokers):
    ran = headrace("top", "--once", "--interval", "0.3", "--json", "--metrics", ",".join(addresses(brokers)))
    assert [each["bytes_out"] is not None for each in ran.json["brokers"]] == [True, True], ran.json[
        "problems"
    ]


def test_top_has_more_columns_where_brokers_tell(start, brokers, seller, name):
    process = start("top", "--json", "--interval", "0.3")
    while True:
        seller.produce(name, b"x" * 1000)
        assert seller.flush(60) == 0
        messages(brokers.bootstrap, name, partitions=4)
        activity = json.loads(process.stdout.readline())
        (topic,) = [each for each in activity["topics"] if each["topic"] == name]
        if topic["bytes_in"] and topic["bytes_out"]:
            break
    assert activity["problems"] == []
    assert all(each["connections"] and each["requests"] is not None for each in activity["brokers"])
    assert sum(each["bytes_out"] for each in activity["brokers"]) >= topic["bytes_out"]
    (client,) = [each for each in activity["clients"] if each["client_id"] == name]
    assert client["connections"] == 2
    assert client["requests"] is not None
