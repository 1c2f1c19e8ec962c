"""The console and admin tools of Apache Kafka 4.3, as its users type them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.systems.kafka_protocol import RunningKafka
from interop.kafka.programs import ProgramFailed

Tool = Callable[..., str]


def test_topics_are_created_listed_described_altered_and_deleted(tool: Tool) -> None:
    tool(
        "TopicCommand",
        "--create",
        "--topic",
        "tools",
        "--partitions",
        "3",
        "--config",
        "retention.ms=1000000",
    )
    assert "tools" in tool("TopicCommand", "--list").splitlines()
    described = tool("TopicCommand", "--describe", "--topic", "tools")
    assert re.search(r"Topic: tools\tTopicId: \S+\tPartitionCount: 3\tReplicationFactor: 1\t", described)
    assert "retention.ms=1000000" in described
    assert len(re.findall(r"Partition: \d\tLeader: \d+\tReplicas: \d+\tIsr: \d+", described)) == 3
    tool("TopicCommand", "--alter", "--topic", "tools", "--partitions", "5")
    assert "PartitionCount: 5" in tool("TopicCommand", "--describe", "--topic", "tools")
    with pytest.raises(ProgramFailed, match="already exists"):
        tool("TopicCommand", "--create", "--topic", "tools")
    tool("TopicCommand", "--create", "--topic", "tools", "--if-not-exists")
    with pytest.raises(ProgramFailed, match=r"(?i)replication factor"):
        tool("TopicCommand", "--create", "--topic", "tools3", "--replication-factor", "3")
    assert "tools" in tool("TopicCommand", "--describe", "--topics-with-overrides")
    assert tool("TopicCommand", "--describe", "--unavailable-partitions") == ""
    tool("TopicCommand", "--delete", "--topic", "tools")
    assert "tools" not in tool("TopicCommand", "--list").splitlines()


def test_console_producer_and_consumer_carry_keys_headers_and_values(
    broker: RunningKafka, tool: Tool
) -> None:
    broker.create("console", 1)
    lines = "".join(f"h1:v{number},h2:w\tkey{number}\tvalue {number}\n" for number in range(100))
    properties = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
    tool("ConsoleProducer", "--topic", "console", "--compression-codec", "zstd", *properties, stdin=lines)
    printed = [
        part
        for name in ("key", "headers", "partition", "offset")
        for part in ("--formatter-property", f"print.{name}=true")
    ]
    consumer = ["consumer.ConsoleConsumer", "--topic", "console", "--max-messages", "100", *printed]
    by_partition = tool(*consumer, "--partition", "0", "--offset", "earliest")
    expected = [f"Partition:0\tOffset:{n}\th1:v{n},h2:w\tkey{n}\tvalue {n}" for n in range(100)]
    assert by_partition.splitlines() == expected
    in_a_group = tool(*consumer, "--from-beginning", "--timeout-ms", "20000")
    assert in_a_group.splitlines() == expected


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_console_producer_sends_with_every_acks(broker: RunningKafka, tool: Tool, acks: str) -> None:
    broker.create(f"acks-{acks}")
    tool("ConsoleProducer", "--topic", f"acks-{acks}", "--request-required-acks", acks, stdin="one\ntwo\n")
    read = ["--topic", f"acks-{acks}", "--partition", "0", "--offset", "earliest", "--max-messages", "2"]
    assert tool("consumer.ConsoleConsumer", *read, "--timeout-ms", "20000") == "one\ntwo\n"


def test_configs_are_added_described_and_removed(broker: RunningKafka, tool: Tool) -> None:
    broker.create("configured")
    entity = ["--entity-type", "topics", "--entity-name", "configured"]
    tool(
        "kafka.admin.ConfigCommand",
        *entity,
        "--alter",
        "--add-config",
        "retention.ms=5000,cleanup.policy=[compact,delete]",
    )
    described = tool("kafka.admin.ConfigCommand", *entity, "--describe")
    assert "retention.ms=5000 sensitive=false" in described
    assert "cleanup.policy=compact,delete" in described
    tool("kafka.admin.ConfigCommand", *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in tool("kafka.admin.ConfigCommand", *entity, "--describe")
    assert "retention.ms=604800000" in tool("kafka.admin.ConfigCommand", *entity, "--describe", "--all")
    with pytest.raises(ProgramFailed, match="Invalid value"):
        tool("kafka.admin.ConfigCommand", *entity, "--alter", "--add-config", "retention.ms=soon")
    defaults = ["--entity-type", "brokers", "--entity-default"]
    tool("kafka.admin.ConfigCommand", *defaults, "--alter", "--add-config", "message.max.bytes=2000000")
    assert "message.max.bytes=2000000" in tool("kafka.admin.ConfigCommand", *defaults, "--describe")
    tool("kafka.admin.ConfigCommand", *defaults, "--alter", "--delete-config", "message.max.bytes")
    assert "message.max.bytes" not in tool("kafka.admin.ConfigCommand", *defaults, "--describe")


def test_offsets_are_told_and_records_deleted(broker: RunningKafka, tool: Tool, tmp_path: Path) -> None:
    broker.create("offsets", 2)
    broker.load("produce", topic="offsets", partitions=2, records=998)
    assert tool("GetOffsetShell", "--topic", "offsets").splitlines() == ["offsets:0:500", "offsets:1:500"]
    wanted = {"partitions": [{"topic": "offsets", "partition": 1, "offset": 123}], "version": 1}
    file = tmp_path / "delete.json"
    file.write_text(json.dumps(wanted))
    assert "low_watermark: 123" in tool("DeleteRecordsCommand", "--offset-json-file", str(file))
    earliest = tool("GetOffsetShell", "--topic", "offsets", "--time", "earliest").splitlines()
    assert earliest == ["offsets:0:0", "offsets:1:123"]
    assert tool("GetOffsetShell", "--topic", "offsets", "--time", "max-timestamp").count(":") == 4


def test_log_directories_are_described(broker: RunningKafka, tool: Tool) -> None:
    broker.create("directories", 2)
    broker.load("produce", topic="directories", partitions=2, records=1000)
    answer = json.loads(tool("LogDirsCommand", "--describe", "--topic-list", "directories").splitlines()[-1])
    (directory,) = answer["brokers"][0]["logDirs"]
    assert directory["error"] is None
    sizes = {replica["partition"]: replica["size"] for replica in directory["partitions"]}
    on_disk = {
        f"directories-{partition}": sum(
            file.stat().st_size for file in (broker.data / f"directories-{partition}").glob("*.log")
        )
        for partition in (0, 1)
    }
    assert sizes == on_disk


def test_producer_and_consumer_performance_run(broker: RunningKafka, bootstrap: str, tool: Tool) -> None:
    broker.create("performance", 3)
    load = ["--topic", "performance", "--num-records", "50000", "--record-size", "100", "--throughput", "-1"]
    sent = tool(
        "ProducerPerformance", *load, "--producer-props", f"bootstrap.servers={bootstrap}", "acks=all"
    )
    assert "50000 records sent" in sent
    read = tool("ConsumerPerformance", "--topic", "performance", "--messages", "50000", "--timeout", "20000")
    assert float(read.splitlines()[-1].split(", ")[4]) >= 50000


def test_verifiable_producer_is_acknowledged_in_full(broker: RunningKafka, tool: Tool) -> None:
    broker.create("verifiable")
    events = [
        json.loads(line)
        for line in tool("VerifiableProducer", "--topic", "verifiable", "--max-messages", "300").splitlines()
    ]
    names = [event["name"] for event in events]
    assert names.count("producer_send_success") == 300
    assert "producer_send_error" not in names
    assert [event["offset"] for event in events if event["name"] == "producer_send_success"] == list(
        range(300)
    )


def test_the_cluster_and_its_api_versions_are_shown(bootstrap: str, tool: Tool) -> None:
    assert "Cluster ID: " in tool("ClusterTool", "cluster-id", "--bootstrap-server", bootstrap)
    shown = tool("BrokerApiVersionsCommand")
    for api in (
        "Produce(0)",
        "Fetch(1)",
        "ListOffsets(2)",
        "Metadata(3)",
        "ApiVersions(18)",
        "CreateTopics(19)",
    ):
        assert re.search(rf"{re.escape(api)}: .*\[usable: \d+\]", shown), f"{api} is not usable in\n{shown}"
