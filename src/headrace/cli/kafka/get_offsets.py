"""kafka-get-offsets.sh (GetOffsetShell)"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

Wanted = Callable[[str, int], bool]
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
_NAMED_TIMES = {"latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5}


def run(arguments: list[str]) -> int:
    options = _parser().parse(arguments)
    try:
        wanted, spec = _filter(options), _time(options.time)

        from headrace.cli.cluster.connection import connect

        return _print(connect(options.bootstrap_server, options.command_config), options, wanted, spec)
    except Failure as failure:
        print(f"Error occurred: {failure.sentence}", file=sys.stderr)
        return Exit.FAILED


def _parser() -> KafkaParser:
    parser = KafkaParser("get-offsets", "Print the offsets of topic partitions.")
    parser.bootstrap(broker_list=True)
    parser.command_config()
    parser.flag("--topic", help="The topic; a regular expression.")
    parser.flag("--partitions", metavar="0,1,…", help="Only these partitions.")
    parser.flag(
        "--topic-partitions", metavar="t1:1,t2:0-3,t3,t4:5-,t5:-3", help="Topics and partitions by pattern."
    )
    parser.flag(
        "--time", default="latest", help="A timestamp in ms, or -1/latest, -2/earliest, -3/max-timestamp."
    )
    parser.switch("--exclude-internal-topics", help="Without internal topics.")
    parser.obsolete(
        {
            "--max-wait-ms": "is ignored: it was the old consumer's.",
            "--offsets": "is ignored: one offset is printed for a partition.",
        },
        takes_value=True,
    )
    return parser


def _print(cluster: Cluster, options: Namespace, wanted: Wanted, spec: Any) -> int:
    from headrace.client.administration import offsets, topics

    names = cluster.call(topics.names, internal=not options.exclude_internal_topics)
    chosen = [
        (topic.name, partition.id)
        for topic in cluster.call(topics.describe, names)
        for partition in topic.partitions
        if wanted(topic.name, partition.id)
    ]
    if not chosen:
        raise Failure("Could not match any topic-partitions with the specified filters")
    found, refused = cluster.call(offsets.list_offsets, chosen, spec)
    for (topic, number), why in refused.items():
        print(
            f"Skip getting offsets for topic-partition {topic}-{number} due to error: {why}",
            file=sys.stderr,
        )
    for topic, number in sorted(found, key=lambda p: f"{p[0]}-{p[1]}"):
        if found[topic, number] >= 0:
            print(f"{topic}:{number}:{found[topic, number]}")
    return Exit.OK


def _time(text: str) -> Any:
    from headrace.client.administration import offsets

    try:
        number = _NAMED_TIMES[text] if text in _NAMED_TIMES else int(text)
    except ValueError:
        raise Failure(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or "
            "earliest-local / -5 or latest-tiered, or a specified long format timestamp"
        ) from None
    if number in (-4, -5):
        # Without tiered storage everything is local: the earliest local offset is the earliest, and none is tiered.
        if number == -5:
            raise Failure("There is no tiered storage, so no offset is the latest tiered one.")
        number = -2
    if number == -1:
        return offsets.LATEST
    if number == -2:
        return offsets.EARLIEST
    return offsets.MAX_TIMESTAMP if number == -3 else offsets.at(number)


def _filter(options: Namespace) -> Wanted:
    if options.topic_partitions is None:
        numbers = _numbers(options.partitions)
        topic = _pattern(options.topic or ".*")
        return lambda name, number: bool(topic.fullmatch(name)) and (not numbers or number in numbers)
    if options.topic is not None or options.partitions is not None:
        raise Failure("--topic-partitions cannot be used with --topic or --partitions")
    rules = [_rule(text) for text in options.topic_partitions.split(",")]
    return lambda name, number: any(rule(name, number) for rule in rules)


def _rule(text: str) -> Wanted:
    match = _RULE.fullmatch(text)
    if match is None:
        raise Failure(f"Invalid rule specification: {text}")
    topic = _pattern(match[1] or ".*")
    if match[2]:
        only = int(match[2])
        return lambda name, number: bool(topic.fullmatch(name)) and number == only
    low, high = int(match[3] or 0), int(match[4]) if match[4] else None
    return lambda name, number: (
        bool(topic.fullmatch(name)) and number >= low and (high is None or number < high)
    )


def _numbers(text: str | None) -> set[int]:
    try:
        return {int(part) for part in text.split(",")} if text else set()
    except ValueError:
        raise Failure(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text.strip().replace(",", "|"))
    except re.error as error:
        raise Failure(f"{text} is an invalid regex: {error}.") from None
