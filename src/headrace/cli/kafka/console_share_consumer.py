"""kafka-console-share-consumer.sh"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, key_values
from headrace.cli.kafka.console_consumer import add_format_flags, formatter, group_id, limits

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

DEFAULT_GROUP = "console-share-consumer"


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    if options.topic is None:
        parser.error("--topic is a required argument")
    if options.reject and options.release:
        parser.error("At most one of --reject and --release may be specified.")
    settings = key_values(options.command_property, "--command-property", options.command_config)
    group = group_id(parser, options.group, settings, "--command-property", "--command-config")
    settings["group.id"] = DEFAULT_GROUP if group is None else group
    settings.setdefault("client.id", "console-share-consumer")

    from headrace.cli.cluster.connection import connect

    return _read(connect(options.bootstrap_server, extra=settings), options)


def _read(cluster: Cluster, options: Namespace) -> int:
    from confluent_kafka import AcknowledgeType

    kind: Any = AcknowledgeType.ACCEPT
    if options.reject or options.release:
        kind = AcknowledgeType.REJECT if options.reject else AcknowledgeType.RELEASE
    show = formatter(options)
    idle, most = limits(options)
    consumer = cluster.share_consumer({"share.acknowledgement.mode": "explicit"})
    count, waiting_since = 0, time.monotonic()
    try:
        consumer.subscribe([options.topic])
        while most is None or count < most:
            for message in consumer.poll(0.1):
                error = message.error()
                if error is not None:
                    raise Failure(f"{error.str()}")
                waiting_since = time.monotonic()
                if most is not None and count >= most:
                    consumer.acknowledge(message, AcknowledgeType.RELEASE)
                    continue
                count += 1
                sys.stdout.buffer.write(show(message))
                consumer.acknowledge(message, kind)
            sys.stdout.buffer.flush()
            if idle is not None and time.monotonic() - waiting_since > idle:
                break
    except BrokenPipeError:
        print("Unable to write to standard out, closing consumer.", file=sys.stderr)
        raise
    finally:
        consumer.close()
        print(f"Processed a total of {count} messages", file=sys.stderr)
        if options.enable_systest_events:
            print("shutdown_complete")
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser(
        "console-share-consumer", "Read data from a topic as a member of a share group and print it."
    )
    parser.bootstrap()
    parser.flag("--topic", help="The topic to consume.")
    parser.flag("--group", help=f"The share group; {DEFAULT_GROUP} by default.")
    parser.flag("--max-messages", type=int, help="Exit after so many messages.")
    parser.flag("--timeout-ms", type=int, help="Exit after so long without a message.")
    parser.switch("--reject", help="Reject each message instead of accepting it.")
    parser.switch("--release", help="Release each message for another delivery instead of accepting it.")
    add_format_flags(parser)
    parser.flag(
        "--command-property",
        old=("--consumer-property",),
        action="append",
        metavar="KEY=VALUE",
        help="A consumer setting.",
    )
    parser.command_config("--consumer-config")
    parser.switch("--enable-systest-events", help="Also print when the consumer has shut down.")
    return parser
