"""Alerts beside Apache Kafka itself: every kind of rule has its data there, notices leave, and one of two instances acts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.systems import Kafka
from bench.systems.kafka_protocol import RunningKafka
from headrace.client import Admin, BrokerError, Producer, TopicPartition
from headrace.watch.alerts.store import Store
from interop.kafka.conftest import SETTINGS
from tests.waiting import until

RULES = """
[alerts]
interval = "0.5s"
window = "2s"
failover = "6s"

[[receiver]]
name = "file"
kind = "command"
command = ["sh", "-c", 'line=$(cat); printf "%s\\n" "$line" >> {out}']

[[rule]]
name = "letters"
kind = "dead-letters"
within = "1h"

[[rule]]
name = "stopped"
kind = "lag-state"
groups = ["billing"]

[[rule]]
name = "losing"
kind = "lag-forecast"
groups = ["billing"]
within = "30d"

[[rule]]
name = "under-replicated"
kind = "under-replicated"

[[rule]]
name = "under-min-isr"
kind = "under-min-isr"

[[rule]]
name = "offline"
kind = "offline-partitions"

[[rule]]
name = "brokers"
kind = "broker-missing"
expected = [1, 2]

[[rule]]
name = "controller"
kind = "no-controller"

[[rule]]
name = "disk"
kind = "disk-filling"
min_free = "99.999%"

[[rule]]
name = "away"
kind = "cluster-away"
for = "1s"
"""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKafka]:
    with Kafka().start(tmp_path_factory.mktemp("kafka") / "data", SETTINGS) as running:
        yield running


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def config(tmp_path: Path, out: Path) -> Path:
    file = tmp_path / "alerts.toml"
    file.write_text(RULES.format(out=out))
    return file


def command(config: Path, bootstrap: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "headrace.cli", "alerts", *arguments, "-c", str(config), "-b", bootstrap]


def told(out: Path, rule: str) -> list[str]:
    notices: list[dict[str, Any]] = (
        [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    )
    return [notice["status"] for notice in notices if notice["rule"] == rule]


def commit(admin: Admin, partition: TopicPartition, offset: int) -> bool:
    """Kafka's coordinator takes a moment to load."""
    try:
        admin.set_group_offsets("billing", {partition: offset})
    except BrokerError as error:
        if not error.retriable:
            raise
        return False
    return True


def delivered(admin: Admin, bootstrap: str) -> int:
    acting = Store({"bootstrap.servers": bootstrap}).read(admin).acting
    return 0 if acting is None else acting.delivered


def test_every_rule_has_data_and_one_of_two_instances_acts(
    kafka: RunningKafka, config: Path, out: Path, tmp_path: Path
) -> None:
    with Admin(kafka.address) as admin, Producer(kafka.address) as producer:
        admin.create_topic("orders", partitions=1, replication_factor=1)
        admin.create_topic("orders.dlq", partitions=1, replication_factor=1)
        for topic in ("orders", "orders", "orders.dlq"):
            producer.send_and_wait(topic, "x")
        [partition] = admin.partitions_of("orders")
        until(lambda: commit(admin, partition, 1), "the coordinator", 300)
        checked = subprocess.run(
            command(config, kafka.address, "check", "--json"), capture_output=True, check=True, timeout=300
        )
        look = json.loads(checked.stdout)
        assert look["no_data"] == {}
        now = {rule: [each["now"] for each in findings] for rule, findings in look["rules"].items()}
        assert now["letters"] == now["disk"] == ["active"]
        assert now["brokers"] == ["clear", "active"]
        for rule in ("under-replicated", "under-min-isr", "offline", "controller"):
            assert now[rule] == ["clear"], rule

        logs = [tmp_path / "first.log", tmp_path / "second.log"]
        instances = []
        environment = {**os.environ, "HEADRACE_CONTEXT": ""}
        try:
            for log in logs:
                with log.open("w") as stderr:
                    run = command(config, kafka.address, "run")
                    instances.append(subprocess.Popen(run, stderr=stderr, env=environment))
                until(lambda: "acts now" in logs[0].read_text(), "the first acts", 300)
            for rule in ("letters", "stopped", "losing", "brokers", "disk"):
                until(lambda rule=rule: told(out, rule) == ["firing"], rule, 300)  # type: ignore[misc]
            # A kill between a notice and its record would have it sent again.
            until(lambda: delivered(admin, kafka.address) == 5, "the records of all five", 60)
            instances[0].kill()
            until(lambda: "acts now" in logs[1].read_text(), "the second acts", 300)
            until(lambda: commit(admin, partition, 2), "the coordinator", 300)
            until(lambda: told(out, "stopped") == ["firing", "resolved"], "the end", 120)
            for rule in ("letters", "brokers", "disk"):
                assert told(out, rule) == ["firing"], "it had fired already"
        finally:
            for each in instances:
                each.kill()
                each.wait()
        assert "Traceback" not in "".join(log.read_text() for log in logs)
