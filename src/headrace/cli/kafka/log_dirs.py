"""kafka-log-dirs.sh"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster


def run(arguments: list[str]) -> int:
    parser = KafkaParser("log-dirs", "Query log directory usage on brokers.")
    parser.bootstrap()
    parser.command_config()
    parser.switch("--describe", help="Describe the log directories; the only thing this tool does.")
    parser.flag("--topic-list", default="", metavar="t1,t2", help="Only these topics.")
    parser.flag("--broker-list", default="", metavar="0,1", help="Only these brokers.")
    options = parser.parse(arguments)
    if not options.describe:
        parser.error('Missing required argument "[describe]"')
    try:
        from headrace.cli.cluster.connection import connect

        _describe(connect(options.bootstrap_server, options.command_config), options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _describe(cluster: Cluster, options: Namespace) -> None:
    live = {node.id for node in cluster.nodes}
    try:
        asked = {int(broker) for broker in options.broker_list.split(",") if broker} or live
    except ValueError:
        raise Failure(f"--broker-list takes the numbers of brokers, not '{options.broker_list}'.") from None
    if not asked <= live:
        raise Failure(
            f"ERROR: The given brokers do not exist from --broker-list: {_ids(asked - live)}. "
            f"Current existent brokers: {_ids(live)}"
        )
    topics = {topic for topic in options.topic_list.split(",") if topic}
    print("Querying brokers for log directories information")
    brokers = [{"broker": broker, "logDirs": _log_dirs(cluster, broker, topics)} for broker in sorted(asked)]
    print(f"Received log directory information from brokers {_ids(asked)}")
    print(json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":")))


def _log_dirs(cluster: Cluster, broker: int, topics: set[str]) -> list[dict[str, Any]]:
    from headrace.client.administration import log_dirs

    return [
        {
            "partitions": [
                {
                    "partition": f"{each.topic}-{each.partition}",
                    "size": each.size,
                    "offsetLag": each.offset_lag,
                    "isFuture": each.is_future,
                }
                for each in directory.replicas
                if not topics or each.topic in topics
            ],
            "error": None if directory.error is None else directory.error.name,
            "logDir": directory.path,
        }
        for directory in cluster.call(log_dirs.describe, broker)
    ]


def _ids(brokers: set[int]) -> str:
    return ",".join(map(str, sorted(brokers)))
