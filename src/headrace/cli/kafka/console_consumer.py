"""kafka-console-consumer.sh"""

from __future__ import annotations

import random
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, key_values

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from headrace.cli.cluster.connection import Cluster


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    _check(parser, options)
    settings = key_values(options.consumer_property, "--command-property", options.command_config)
    group = group_id(parser, options.group, settings, "--consumer-property", "--consumer.config")
    if group is not None and options.partition is not None:
        parser.error("Options group and partition cannot be specified together.")
    settings.setdefault("auto.offset.reset", "earliest" if options.from_beginning else "latest")
    if options.from_beginning and settings["auto.offset.reset"] not in ("earliest", "smallest"):
        reset = settings["auto.offset.reset"]
        parser.error(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )
    if group is None:
        # This group is not used again, so it commits nothing unless asked to.
        settings.setdefault("enable.auto.commit", "false")
        group = f"console-consumer-{random.randrange(100_000)}"
    settings.update({"group.id": group, "isolation.level": options.isolation_level})
    settings.setdefault("client.id", "console-consumer")
    show = formatter(options)

    from headrace.cli.cluster.connection import connect

    return _read(connect(options.bootstrap_server, extra=settings), options, show)


def _read(cluster: Cluster, options: Namespace, show: Callable[[Message], bytes]) -> int:
    from headrace.cli.cluster import feed

    consumer = cluster.consumer({"allow.auto.create.topics": True})
    idle, most = limits(options)
    count = 0
    try:
        _start(consumer, options)
        for batch in feed.batches(consumer, most=most, idle_timeout=idle):
            for message in batch:
                count += 1
                try:
                    sys.stdout.buffer.write(show(message))
                except Failure as failure:
                    if not options.skip_message_on_error:
                        raise
                    print(
                        f"Error processing message, skipping this message: {failure.sentence}",
                        file=sys.stderr,
                    )
            if batch:
                sys.stdout.buffer.flush()
    except BrokenPipeError:
        print("Unable to write to standard out, closing consumer.", file=sys.stderr)
        raise
    finally:
        consumer.close()
        print(f"Processed a total of {count} messages", file=sys.stderr)
        if options.enable_systest_events:
            print("shutdown_complete")
    return Exit.OK


def _start(consumer: Consumer, options: Namespace) -> None:
    from headrace.cli.cluster import feed

    if options.partition is not None:
        default = "earliest" if options.from_beginning else "latest"
        position = default if options.offset is None else options.offset
        feed.start(consumer, [(options.topic, options.partition)], position)
    elif options.include is not None:
        consumer.subscribe([f"^({options.include})$"])
    else:
        consumer.subscribe([options.topic])


def _check(parser: KafkaParser, options: Namespace) -> None:
    if (options.topic is None) == (options.include is None):
        parser.error("Exactly one of --include/--topic is required. ")
    if options.partition is not None:
        if options.topic is None:
            parser.error("The topic is required when partition is specified.")
        if options.from_beginning and options.offset is not None:
            parser.error("Options from-beginning and offset cannot be specified together.")
    elif options.offset is not None:
        parser.error("The partition is required when offset is specified.")
    if options.offset is not None:
        options.offset = options.offset.lower()
        if options.offset not in ("earliest", "latest") and not options.offset.isdigit():
            parser.error(
                f"The provided offset value '{options.offset}' is incorrect. Valid values are 'earliest', 'latest', "
                "or a non-negative long."
            )


def group_id(
    parser: KafkaParser, flag: str | None, settings: dict[str, str], property_option: str, config_option: str
) -> str | None:
    """The group that --group or the settings name, taken out of the settings; they must not differ."""
    given = {group for group in (flag, settings.pop("group.id", None)) if group is not None}
    if len(given) > 1:
        shown = ", ".join(f"'{group}'" for group in sorted(given))
        parser.error(
            f"The group ids provided in different places (directly using '--group', via '{property_option}', or via "
            f"'{config_option}') do not match. Detected group ids: {shown}"
        )
    return given.pop() if given else None


def limits(options: Namespace) -> tuple[float | None, int | None]:
    """How many seconds to wait for a message, and how many messages to read; negative values are no limit."""
    idle = options.timeout_ms / 1000 if options.timeout_ms is not None and options.timeout_ms >= 0 else None
    most = options.max_messages if options.max_messages is not None and options.max_messages >= 0 else None
    return idle, most


def formatter(options: Namespace) -> Callable[[Message], bytes]:
    """How each record is printed, as the options say."""
    properties = key_values(options.formatter_property, "--formatter-property", options.formatter_config)
    if options.key_deserializer:
        properties.setdefault("key.deserializer", options.key_deserializer)
    if options.value_deserializer:
        properties.setdefault("value.deserializer", options.value_deserializer)

    from headrace.cli.view.records.text_format import TextFormat

    name = options.formatter.rpartition(".")[2]
    if name in ("DefaultMessageFormatter", "DefaultMessageFormatter$", "LoggingMessageFormatter"):
        return TextFormat.from_properties(properties).line
    if name == "NoOpMessageFormatter":
        return lambda _: b""
    raise Failure(
        f"The formatter {options.formatter} is Java code; 'headrace consume --json' prints whole records."
    )


def add_format_flags(parser: KafkaParser) -> None:
    parser.flag("--key-deserializer", metavar="CLASS", help="One of Java's standard deserializers, for keys.")
    parser.flag(
        "--value-deserializer", metavar="CLASS", help="One of Java's standard deserializers, for values."
    )
    parser.flag(
        "--formatter", default="DefaultMessageFormatter", metavar="CLASS", help="Kafka's own formatters only."
    )
    parser.flag(
        "--formatter-property",
        old=("--property",),
        action="append",
        metavar="KEY=VALUE",
        help="print.timestamp, print.partition, print.offset, print.epoch, print.headers, print.key, print.value, "
        "key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer, "
        "headers.deserializer",
    )
    parser.flag("--formatter-config", type=Path, metavar="FILE", help="A file of formatter properties.")


def _parser() -> KafkaParser:
    parser = KafkaParser("console-consumer", "Read data from topics and output it to standard output.")
    parser.bootstrap(broker_list=True)
    parser.flag("--topic", help="The topic to consume.")
    parser.flag("--include", old=("--whitelist",), metavar="REGEX", help="The topics to consume.")
    parser.flag(
        "--partition", type=int, help="The partition to consume; from its end unless --offset is given."
    )
    parser.flag("--offset", help="A non-negative number, 'earliest' or 'latest'; with --partition.")
    parser.flag("--group", help="The consumer group.")
    parser.switch("--from-beginning", help="Start with the earliest message if the group has no offset yet.")
    parser.flag("--max-messages", type=int, help="Exit after so many messages.")
    parser.flag(
        "--timeout-ms", old=("--consumer-timeout-ms",), type=int, help="Exit after so long without a message."
    )
    parser.switch(
        "--skip-message-on-error", help="Skip a message that cannot be printed instead of stopping."
    )
    parser.flag("--isolation-level", default="read_uncommitted", help="read_uncommitted or read_committed.")
    add_format_flags(parser)
    parser.flag(
        "--command-property",
        old=("--consumer-property",),
        dest="consumer_property",
        action="append",
        metavar="KEY=VALUE",
        help="A consumer setting.",
    )
    parser.command_config("--consumer.config")
    parser.switch("--enable-systest-events", help="Also print when the consumer has shut down.")
    parser.obsolete(
        {
            "--new-consumer": "is ignored: there is one consumer.",
            "--delete-consumer-offsets": "is ignored: offsets are not in ZooKeeper; see kafka-consumer-groups.sh.",
            "--csv-reporter-enabled": "is ignored: there is no CSV reporter.",
        },
        takes_value=False,
    )
    parser.obsolete(
        {
            "--metrics-dir": "is ignored: there is no CSV reporter.",
            "--blacklist": "left Kafka with the old consumer and is ignored; write --include so that it excludes.",
        },
        takes_value=True,
    )
    return parser
