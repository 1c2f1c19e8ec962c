"""Java's and franz-go's clients push their metrics (KIP-714), and Kafka's own tools say which."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.processes import free_port
from bench.provision import java
from bench.systems import Headrace
from bench.systems.kafka_protocol import RunningKafka
from interop.kafka.conftest import SETTINGS
from interop.kafka.programs import FRANZ, JAVA_CLIENT, Program, finish

Tool = Callable[..., str]
Page = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKafka]:
    settings = {**SETTINGS, "headrace.metrics.listener": f"127.0.0.1:{port}"}
    with Headrace().start(tmp_path_factory.mktemp("telemetry") / "data", settings) as running:
        yield running


@pytest.fixture(scope="module")
def tool(broker: RunningKafka) -> Tool:
    def call(name: str, *arguments: str) -> str:
        return finish([*java(name), "--bootstrap-server", broker.address, *arguments])

    return call


@pytest.fixture
def telemetry(port: int) -> Page:
    """What the broker knows of clients that push, with the metrics of one."""

    def look(wanted: str = "") -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/clients?id={wanted}", timeout=60) as page:
            found: list[dict[str, Any]] = json.load(page)["telemetry"]
        return found

    return look


def test_kafkas_own_tools_make_show_and_delete_subscriptions(tool: Tool) -> None:
    command, configs = "org.apache.kafka.tools.ClientMetricsCommand", "kafka.admin.ConfigCommand"
    made = tool(command, "--alter", "--name", "some", "--metrics", "org.apache.kafka.producer.,x", "--interval", "5000", "--match", "client_id=a.*")  # fmt: skip
    assert "Altered client metrics config for some." in made
    assert tool(command, "--list").split() == ["some"]
    shown = tool(command, "--describe", "--name", "some")
    assert "Client metrics configs for some are:" in shown
    assert {"interval.ms=5000", "match=client_id=a.*", "metrics=org.apache.kafka.producer.,x"} <= set(
        shown.split()
    )
    assert "interval.ms=5000" in tool(configs, "--describe", "--client-metrics", "some")
    tool(command, "--alter", "--name", "some", "--interval", "", "--match", "")
    assert "interval.ms=300000" in tool(command, "--describe", "--name", "some")
    assert "Deleted client metrics config for some." in tool(command, "--delete", "--name", "some")
    assert tool(command, "--list").split() == []


@pytest.mark.parametrize(
    ("program", "software", "metric"),
    [
        (JAVA_CLIENT, "apache-kafka-java", "org.apache.kafka.producer.connection.creation.total"),
        (FRANZ, "kgo", "org.apache.kafka.producer.connection.creation.total"),
    ],
    ids=["java", "franz"],
)
def test_a_client_pushes_what_is_asked_for_by_itself(
    broker: RunningKafka, tool: Tool, telemetry: Page, program: Program, software: str, metric: str
) -> None:
    tool("org.apache.kafka.tools.ClientMetricsCommand", "--alter", "--name", "all", "--metrics", "org.apache.kafka.", "--interval", "500")  # fmt: skip
    topic = f"steady-{program.name}"
    broker.create(topic, 1)
    process = program.begin("steady", broker.address, topic, "3000")
    pushed: list[dict[str, Any]] = []
    deadline = time.monotonic() + 120
    while not pushed and time.monotonic() < deadline:
        time.sleep(0.1)
        for each in telemetry():
            if each["software_name"] == software and each["series"]:
                whole = telemetry(each["client_instance_id"])
                pushed += [one for one in whole if metric in {s["name"] for s in one.get("values", ())}]
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert pushed, telemetry()
    values = {series["name"]: series for series in pushed[0]["values"]}
    assert values[metric]["value"] >= 1
    assert values[metric]["temporality"] == "cumulative"
    assert all(name.startswith("org.apache.kafka.") for name in values)
