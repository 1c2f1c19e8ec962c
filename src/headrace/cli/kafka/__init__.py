"""Kafka's own tools under their known names: `headrace kafka topics …`, or `bin/kafka-topics.sh …`.

They take the flags of every Kafka generation and print what Kafka's tools print, so that scripts and habits
carry over. Each tool is a module with `run(arguments)`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple

from headrace.cli.failure import Exit, Misuse, did_you_mean


class Tool(NamedTuple):
    module: str
    summary: str


TOOLS = {
    "topics": Tool("topics", "Create, list, describe, alter and delete topics."),
    "console-producer": Tool("console_producer", "Write lines of standard input to a topic."),
    "console-consumer": Tool("console_consumer", "Print the records of topics."),
    "consumer-groups": Tool("consumer_groups", "List, describe, reset and delete consumer groups."),
    "share-groups": Tool("share_groups", "List, describe, reset and delete share groups."),
    "console-share-consumer": Tool("console_share_consumer", "Print records as a member of a share group."),
    "groups": Tool("groups", "List groups of all types."),
    "transactions": Tool("transactions", "List, describe and abort transactions; find hanging ones."),
    "features": Tool("features", "Describe, upgrade and downgrade feature levels."),
    "acls": Tool("acls", "Add, list and remove ACLs."),
    "configs": Tool("configs", "Describe and alter settings of topics, brokers and groups."),
    "client-metrics": Tool("client_metrics", "Say which metrics clients push to the brokers."),
    "delegation-tokens": Tool("delegation_tokens", "Create, renew, expire and describe delegation tokens."),
    "get-offsets": Tool("get_offsets", "Print offsets of partitions: earliest, latest, by time."),
    "delete-records": Tool("delete_records", "Delete the records of partitions before an offset."),
    "producer-perf-test": Tool("producer_perf_test", "Measure producing."),
    "consumer-perf-test": Tool("consumer_perf_test", "Measure consuming."),
    "e2e-latency": Tool("e2e_latency", "Measure the time from producing a record to consuming it."),
    "verifiable-producer": Tool(
        "verifiable_producer", "Produce growing numbers and print every answer as JSON."
    ),
    "verifiable-consumer": Tool(
        "verifiable_consumer", "Consume, and print what happens to the consumer as JSON."
    ),
    "dump-log": Tool("dump_log", "Print what is in segment, index and snapshot files."),
    "log-dirs": Tool("log_dirs", "Show what is in the brokers' log directories."),
    "reassign-partitions": Tool("reassign_partitions", "Move partitions to other brokers."),
    "leader-election": Tool("leader_election", "Elect preferred leaders, or any live replica."),
    "cluster": Tool("cluster", "The cluster's id and endpoints; forget a broker."),
    "broker-api-versions": Tool("broker_api_versions", "Show the versions of each API that brokers offer."),
    "storage": Tool("storage", "Make a random id; show what is in a broker's data directories."),
    "server-start": Tool("server_start", "Start a broker with the settings of a file."),
    "server-stop": Tool("server_stop", "Stop the broker of this machine that listens at an address."),
    "run-class": Tool("run_class", "Say which tool has the place of a Java class."),
}


def run(arguments: list[str]) -> int:
    name = _short(arguments[0]) if arguments else "--help"
    if name in ("-h", "--help"):
        _help()
        return Exit.OK
    if name not in TOOLS:
        raise Misuse(
            f"There is no Kafka tool '{name}'.{did_you_mean(name, TOOLS)} 'headrace kafka --help' lists them."
        )
    module = import_module(f"{__name__}.{TOOLS[name].module}")
    code: int = module.run(arguments[1:])
    return code


def main() -> None:
    """Entry point of `python -m headrace.cli.kafka <tool> …`."""
    from headrace.cli import frame

    sys.exit(frame.run(lambda: run(sys.argv[1:])))


def _short(name: str) -> str:
    """`kafka-topics.sh` and `kafka-topics` are `topics`."""
    return name.removeprefix("kafka-").removesuffix(".sh")


def _help() -> None:
    print("Usage: headrace kafka TOOL [FLAGS]...\n")
    print("  Kafka's own tools: their flags (of every Kafka generation) and their output.\n")
    print("Tools:")
    width = max(map(len, TOOLS))
    for name, tool in TOOLS.items():
        print(f"  {name.ljust(width)}  {tool.summary}")
    print("\n'headrace kafka TOOL --help' shows a tool's flags; bin/kafka-TOOL.sh is the same command.")
