"""Consumer groups: the Java consumer with both protocols, franz-go, and Kafka's consumer-groups tool."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from bench.systems.kafka_protocol import KafkaProtocolSystem, RunningKafka
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


@pytest.mark.parametrize("kind", ["range", "cooperative", "uniform", "pattern", "migrate"])
def test_java_members_come_and_go_and_no_partition_has_two_owners(broker: RunningKafka, kind: str) -> None:
    """With both protocols, a pattern matched by the broker, and a live group that changes protocol twice."""
    topic = group = f"storm-{kind}"
    broker.create(topic, 6)
    JAVA_CLIENT.run("storm", broker.address, topic, group, kind, limit=240)


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


def test_members_of_both_protocols_are_shown_with_their_partitions(broker: RunningKafka, tool: Tool) -> None:
    broker.create("shown", 2)
    settings = {"bootstrap.servers": broker.address, "client.id": "shown-client"}
    for protocol, assignor in (("classic", "range"), ("consumer", "uniform")):
        group = f"shown-{protocol}"
        consumer = Consumer({**settings, "group.id": group, "group.protocol": protocol})
        consumer.subscribe(["shown"])
        deadline = time.monotonic() + 30
        while len(consumer.assignment()) < 2:
            assert time.monotonic() < deadline, f"{group} was not given its partitions"
            consumer.poll(0.1)
        try:
            command = "consumer.group.ConsumerGroupCommand"
            members = tool(command, "--describe", "--group", group, "--members", "--verbose")
            assert re.search(r"/127\.0\.0\.1\s+shown-client\s+2\s+", members), members
            state = tool(command, "--describe", "--group", group, "--state")
            assert re.search(rf"{assignor}\s+Stable", state), state
            listed = tool(command, "--list", "--state", "--type", protocol)
            assert re.search(rf"^{group}\s+{protocol.capitalize()}\s+Stable", listed, re.MULTILINE), listed
            refused = tool(command, "--delete-offsets", "--group", group, "--topic", "shown")
            assert "actively subscribed" in refused
        finally:
            consumer.close()


def test_kafkas_dump_tool_reads_the_records_of_both_protocols(
    system: KafkaProtocolSystem, tool: Tool, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with system.start(
        data, {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    ) as broker:
        broker.create("dumped", 2)
        broker.load("produce", topic="dumped", partitions=2, records=10)
        for protocol in ("classic", "consumer"):
            _read(JAVA_CLIENT, broker.address, "dumped", f"dumped-{protocol}", protocol, 10)
    logs = [str(path) for path in sorted(data.glob("__consumer_offsets-0/*.log"))]
    shown = tool("DumpLogSegments", "--offsets-decoder", "--files", ",".join(logs))
    for kind in (
        '"type":"1","data":{"group":"dumped-classic","topic":"dumped","partition":0}',
        '"type":"2","data":{"group":"dumped-classic"}',
        '"type":"3","data":{"groupId":"dumped-consumer"}',
        '"type":"5"',
        '"type":"6"',
        '"type":"7"',
        '"type":"8"',
    ):
        assert kind in shown, f"{kind} is not in\n{shown}"
    assert "Error" not in shown
    assert "unknown" not in shown.lower()
