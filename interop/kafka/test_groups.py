"""Consumer groups: the Java consumer with both protocols, franz-go, and Kafka's consumer-groups tool."""

import json
from collections.abc import Callable

import pytest

from bench.systems.kafka_protocol import RunningKafka
from interop.kafka.dataset import from_json
from interop.kafka.programs import FRANZ, JAVA_CLIENT, Program

Tool = Callable[..., str]
Place = tuple[int, int]


def _read(
    client: Program, bootstrap: str, topic: str, group: str, protocol: str, at_least: int
) -> list[Place]:
    output = client.run("group", bootstrap, topic, group, protocol, str(at_least))
    records = (from_json(json.loads(line))[1] for line in output.splitlines())
    return [(record.partition, record.offset) for record in records]


@pytest.mark.parametrize(
    ("client", "protocol"),
    [(JAVA_CLIENT, "classic"), (JAVA_CLIENT, "consumer"), (FRANZ, "classic")],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_group_goes_on_where_it_committed(
    broker: RunningKafka, tool: Tool, client: Program, protocol: str
) -> None:
    topic = group = f"group-{client.name}-{protocol}"
    broker.create(topic, 3)
    broker.load("produce", topic=topic, partitions=3, records=597)
    first = _read(client, broker.address, topic, group, protocol, 100)
    described = tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group)
    lags = [int(line.split()[5]) for line in described.splitlines() if line.startswith(group)]
    assert sum(lags) == 600 - len(first)
    second = _read(client, broker.address, topic, group, protocol, 600 - len(first))
    assert sorted(first + second) == [(partition, offset) for partition in range(3) for offset in range(200)]


def test_groups_are_listed_described_reset_and_deleted(broker: RunningKafka, tool: Tool) -> None:
    topic = group = "group-tool"
    broker.create(topic)
    broker.load("produce", topic=topic, records=99)
    _read(JAVA_CLIENT, broker.address, topic, group, "classic", 100)
    assert group in tool("consumer.group.ConsumerGroupCommand", "--list").splitlines()
    state = tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group, "--state")
    assert "Empty" in state
    reset = ["--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "40"]
    assert "40" in tool("consumer.group.ConsumerGroupCommand", *reset, "--dry-run")
    tool("consumer.group.ConsumerGroupCommand", *reset, "--execute")
    assert len(_read(JAVA_CLIENT, broker.address, topic, group, "classic", 60)) == 60
    tool("consumer.group.ConsumerGroupCommand", "--delete", "--group", group)
    assert group not in tool("consumer.group.ConsumerGroupCommand", "--list").splitlines()
