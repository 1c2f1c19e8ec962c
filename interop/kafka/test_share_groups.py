"""Share groups: Kafka's own share consumer, its share-groups tool and console, and its dump tool on the state that brokers keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.systems.kafka_protocol import KafkaProtocolSystem, RunningKafka
from headrace.testing.wire import WireClient
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from interop.kafka.dataset import from_json
from interop.kafka.programs import JAVA_CLIENT

Tool = Callable[..., str]
GROUP, SET = 32, 0


def begin_with_the_first(broker: RunningKafka, group: str) -> None:
    setting = AlterableConfig("share.auto.offset.reset", SET, "earliest")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP, group, [setting])])
    with WireClient(broker.address) as client:
        assert client.call(request, 1).responses[0].error_code == 0


@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
def test_javas_share_consumer_finishes_every_record_once(broker: RunningKafka, mode: str) -> None:
    """With locks renewed, a record released and one rejected."""
    topic = group = f"share-{mode}"
    broker.create(topic)
    begin_with_the_first(broker, group)
    broker.load("produce", topic=topic, records=99)
    output = JAVA_CLIENT.run("share", broker.address, topic, group, mode, "100")
    found = [from_json(json.loads(line))[1].offset for line in output.splitlines()]
    assert sorted(found) == list(range(100))


def test_kafkas_tools_read_describe_reset_and_delete_a_share_group(broker: RunningKafka, tool: Tool) -> None:
    topic = group = "share-tools"
    broker.create(topic)
    begin_with_the_first(broker, group)
    broker.load("produce", topic=topic, records=9)
    read = tool(
        *("consumer.ConsoleShareConsumer", "--topic", topic, "--group", group),
        *("--max-messages", "10", "--timeout-ms", "20000"),
    )
    assert len(read.splitlines()) == 10
    command = "consumer.group.ShareGroupCommand"
    assert group in tool(command, "--list").splitlines()

    def start() -> list[str]:
        (line,) = [
            line for line in tool(command, "--describe", "--group", group).splitlines() if topic in line[1:]
        ]
        return line.split()

    assert start()[:4] == [group, topic, "0", "10"]
    tool(command, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert start()[:4] == [group, topic, "0", "0"]
    assert "success" in tool(command, "--delete", "--group", group).lower()
    assert group not in tool(command, "--list").splitlines()


def test_kafkas_dump_tool_reads_what_brokers_keep_of_a_share_group(
    system: KafkaProtocolSystem, tool: Tool, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    settings = {
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.snapshot.update.records.per.snapshot": "2",
    }
    with system.start(data, settings) as broker:
        broker.create("dumped")
        begin_with_the_first(broker, "dumped")
        broker.load("produce", topic="dumped", records=99)
        JAVA_CLIENT.run("share", broker.address, "dumped", "dumped", "record_limit", "100")

    def dump(decoder: str, topic: str) -> str:
        logs = ",".join(str(path) for path in sorted(data.glob(f"{topic}-0/*.log")))
        shown = tool("DumpLogSegments", decoder, "--files", logs)
        assert "Error" not in shown
        assert "unknown" not in shown.lower()
        return shown

    groups = dump("--offsets-decoder", "__consumer_offsets")
    for kind in range(10, 16):
        assert f'"type":"{kind}"' in groups, f"{kind} is not in\n{groups}"
    states = dump("--share-group-state-decoder", "__share_group_state")
    for kind in (
        '"type":"0"',
        '"type":"1"',
        '"groupId":"dumped"',
        '"deliveryCompleteCount"',
        '"stateBatches"',
    ):
        assert kind in states, f"{kind} is not in\n{states}"
