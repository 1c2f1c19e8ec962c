"""kafka-run-class.sh: there is no Java here, so it says which tool has taken the class's place."""

from __future__ import annotations

import sys

from headrace.cli.failure import Exit
from headrace.cli.kafka.arguments import KafkaParser

_PLACES = {
    "kafka.Kafka": "kafka-server-start.sh",
    "kafka.tools.DumpLogSegments": "kafka-dump-log.sh",
    "org.apache.kafka.tools.DumpLogSegments": "kafka-dump-log.sh",
    "kafka.tools.GetOffsetShell": "kafka-get-offsets.sh",
    "org.apache.kafka.tools.GetOffsetShell": "kafka-get-offsets.sh",
    "kafka.admin.TopicCommand": "kafka-topics.sh",
    "kafka.admin.ConsumerGroupCommand": "kafka-consumer-groups.sh",
    "kafka.admin.ConfigCommand": "kafka-configs.sh",
    "kafka.tools.EndToEndLatency": "kafka-e2e-latency.sh",
    "org.apache.kafka.tools.EndToEndLatency": "kafka-e2e-latency.sh",
    "kafka.tools.JmxTool": "headrace up --metrics, which serves the same numbers to Prometheus,",
    "org.apache.kafka.tools.JmxTool": "headrace up --metrics, which serves the same numbers to Prometheus,",
}


def run(arguments: list[str]) -> int:
    parser = KafkaParser("run-class", "Run a Java class: not here. Says which tool has its place.")
    if not arguments or arguments[0] == "--help":
        parser.parse(["--help"])
    name = next((each for each in arguments if not each.startswith("-")), "")
    place = _PLACES.get(name, "'headrace kafka --help', which lists Kafka's tools,")
    print(f"There is no Java here to run {name or 'a class'} with; {place} takes its place.", file=sys.stderr)
    return Exit.FAILED
