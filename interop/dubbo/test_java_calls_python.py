"""A Java consumer of Dubbo 2.7.3 calls Python providers, found through ZooKeeper."""

from __future__ import annotations

import time
from typing import Any

import pytest

from headrace.testing.zookeeper import ZooKeeperServer


@pytest.fixture
def where(zookeeper: ZooKeeperServer) -> tuple[str, str]:
    """A registry of its own for each test."""
    return ("--zookeeper", f"{zookeeper.connect_string}?group=d{time.monotonic_ns()}")


def failed(outcome: dict[str, Any]) -> dict[str, Any]:
    return {name: result for name, result in outcome.items() if result != "ok"}


def test_every_check_passes_through_zookeeper(java: Any, python: Any, where: tuple[str, str]) -> None:
    with python.provider(*where, "--name", "first"), java.consumer(*where) as consumer:
        outcome = consumer.ask("checks")
        assert len(outcome) > 50
        assert failed(outcome) == {}


def test_every_check_passes_beside_a_rest_export_that_java_cannot_use(
    java: Any, python: Any, where: tuple[str, str]
) -> None:
    with python.provider(*where, "--name", "both", "--rest"), java.consumer(*where) as consumer:
        assert failed(consumer.ask("checks")) == {}


def test_a_tagged_python_provider_serves_those_who_ask_for_its_tag(
    java: Any, python: Any, where: tuple[str, str], eventually: Any
) -> None:
    with (
        python.provider(*where, "--name", "plain") as plain,
        python.provider(*where, "--name", "gray", "--tag", "gray"),
        java.consumer(*where) as anybody,
        java.consumer(*where, "--tag", "gray") as tagged,
        java.consumer(*where, "--tag", "green") as unserved,
    ):
        eventually(lambda: set(tagged.ask("whoami 20")) == {"gray"})
        eventually(lambda: set(anybody.ask("whoami 20")) == {"plain"})
        eventually(lambda: set(unserved.ask("whoami 20")) == {"plain"})
        plain.kill()
        assert set(tagged.ask("whoami 20")) == {"gray"}
        assert "gray" not in anybody.ask("whoami 3")


def test_every_check_passes_when_called_directly(java: Any, python: Any) -> None:
    with (
        python.provider("--name", "alone") as provider,
        java.consumer("--url", f"dubbo://127.0.0.1:{provider.ready}") as consumer,
    ):
        assert failed(consumer.ask("checks")) == {}


def test_version_group_and_token_are_found_through_the_registry(
    java: Any, python: Any, where: tuple[str, str]
) -> None:
    chosen = ("--version", "1.2.0", "--group", "blue")
    with (
        python.provider(*where, *chosen, "--name", "chosen", "--token", "secret") as provider,
        java.consumer(*where, *chosen) as consumer,
        java.consumer("--url", f"dubbo://127.0.0.1:{provider.ready}", *chosen) as stranger,
    ):
        assert consumer.ask("whoami 2") == {"chosen": 2}
        (complaint,) = stranger.ask("whoami 1")
        assert "token" in complaint


def test_heartbeats_keep_an_idle_connection(java: Any, python: Any, where: tuple[str, str]) -> None:
    beat = ("--heartbeat", "500")
    with (
        python.provider(*where, *beat, "--name", "idle") as provider,
        java.consumer(*where, *beat) as consumer,
    ):
        assert consumer.ask("whoami 1") == {"idle": 1}
        before = provider.connections()
        time.sleep(5)  # ten heartbeats; silence for three would cut the connection
        assert provider.connections() == before
        assert consumer.ask("whoami 1") == {"idle": 1}


def test_calls_spread_over_two_providers_and_survive_the_loss_and_return_of_one(
    java: Any, python: Any, where: tuple[str, str], eventually: Any
) -> None:
    with (
        python.provider(*where, "--name", "one") as one,
        python.provider(*where, "--name", "two"),
        java.consumer(*where) as consumer,
    ):
        eventually(lambda: set(consumer.ask("whoami 40")) == {"one", "two"})
        one.kill()
        # Before ZooKeeper notices, failover has to; afterwards nobody asks the dead one any more.
        assert set(consumer.ask("whoami 40")) == {"two"}
        with python.provider(*where, "--name", "one"):
            eventually(lambda: set(consumer.ask("whoami 40")) == {"one", "two"})


def test_a_provider_that_stops_in_good_order_fails_no_call(
    java: Any, python: Any, where: tuple[str, str], eventually: Any
) -> None:
    with (
        python.provider(*where, "--name", "staying"),
        java.consumer(*where) as consumer,
    ):
        with python.provider(*where, "--name", "leaving"):
            eventually(lambda: set(consumer.ask("whoami 40")) == {"leaving", "staying"})
        assert consumer.ask("whoami 40") == {"staying": 40}


def test_a_java_and_a_python_provider_serve_the_same_consumer(
    java: Any, python: Any, where: tuple[str, str], eventually: Any
) -> None:
    with (
        python.provider(*where, "--name", "python"),
        java.provider(*where, "--name", "java"),
        java.consumer(*where) as consumer,
    ):
        eventually(lambda: set(consumer.ask("whoami 40")) == {"java", "python"})
