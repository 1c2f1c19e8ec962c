"""Java's own provider and consumer agree on all that Python is then held to."""

from __future__ import annotations

import json
from typing import Any

from headrace.testing.zookeeper import ZooKeeperServer


def failed(outcome: dict[str, Any]) -> dict[str, Any]:
    return {name: result for name, result in outcome.items() if result != "ok"}


def test_a_java_consumer_finds_a_java_provider_and_all_its_checks_pass(
    java: Any, zookeeper: ZooKeeperServer
) -> None:
    where = ("--zookeeper", zookeeper.connect_string)
    with java.provider(*where, "--name", "first"), java.consumer(*where) as consumer:
        outcome = consumer.ask("checks")
        assert len(outcome) > 50
        assert failed(outcome) == {}
        assert consumer.ask("whoami 3") == {"first": 3}


def test_the_load_program_measures_a_provider_called_directly(java: Any) -> None:
    with java.provider("--name", "loaded") as provider:
        load = java.run(
            *("Load", "--url", f"dubbo://127.0.0.1:{provider.ready}"),
            *("--bytes", "1024", "--concurrent", "4", "--warmup", "1", "--seconds", "1"),
        )
        result = json.loads(load.stdout.splitlines()[-1])
    assert result["failures"] == 0
    assert result["calls"] > 0
    assert 0 < result["p50_us"] <= result["p99_us"]
