"""kafka-verifiable-consumer.sh: what happens to a consumer, as lines of JSON."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, key_values
from headrace.cli.kafka.verifiable_producer import Stop, tell

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_STRATEGIES = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def run(arguments: list[str]) -> int:
    parser = KafkaParser(
        "verifiable-consumer", "Consume a topic in a group, and print what happens as lines of JSON."
    )
    parser.bootstrap(broker_list=True)
    parser.flag("--topic", required=True, help="What to consume.")
    parser.flag(
        "--group-protocol",
        type=str.lower,
        choices=("classic", "consumer"),
        default="classic",
        help="The group protocol.",
    )
    parser.flag("--group-remote-assignor", help="With --group-protocol consumer: the broker's assignor.")
    parser.flag("--group-id", required=True, help="The group.")
    parser.flag("--group-instance-id", help="A name that makes the member static.")
    parser.flag("--max-messages", type=int, default=-1, help="How many; -1: until the tool is stopped.")
    parser.flag("--session-timeout", type=int, metavar="MS", help="With the classic protocol.")
    parser.switch("--verbose", help="Print every record too.")
    parser.switch("--enable-autocommit", help="Let the client commit now and then.")
    parser.flag(
        "--reset-policy", choices=("earliest", "latest", "none"), default="earliest", help="Where to begin."
    )
    parser.flag("--assignment-strategy", choices=tuple(_STRATEGIES), help="With the classic protocol.")
    parser.command_config("--consumer.config")
    options = parser.parse(arguments)
    try:
        return _consume(options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED


def _settings(options: Namespace) -> dict[str, str]:
    settings = {
        **key_values(None, "", options.command_config),
        "group.id": options.group_id,
        "group.protocol": options.group_protocol,
        "enable.auto.commit": str(options.enable_autocommit).lower(),
        "auto.offset.reset": options.reset_policy,
    }
    given = {
        "group.instance.id": options.group_instance_id,
        "group.remote.assignor": options.group_remote_assignor,
        "session.timeout.ms": options.session_timeout,
        "partition.assignment.strategy": _STRATEGIES.get(options.assignment_strategy),
    }
    return settings | {name: str(value) for name, value in given.items() if value is not None}


def _consume(options: Namespace) -> int:
    from headrace.cli.cluster.connection import connect

    consumer = connect(options.bootstrap_server, extra=_settings(options)).consumer({})
    stop, left = Stop(), options.max_messages

    def changed(name: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        def told(_: Consumer, partitions: list[TopicPartition]) -> None:
            tell(name, partitions=[{"topic": each.topic, "partition": each.partition} for each in partitions])

        return told

    tell("startup_complete")
    consumer.subscribe(
        [options.topic], on_assign=changed("partitions_assigned"), on_revoke=changed("partitions_revoked")
    )
    try:
        while not stop.asked and left != 0:
            records = [
                each
                for each in consumer.consume(500 if left < 0 else min(left, 500), 0.5)
                if not each.error()
            ]
            if records:
                _show(records, options.verbose)
                if not options.enable_autocommit:
                    _commit(consumer)
                left = left if left < 0 else left - len(records)
    finally:
        consumer.close()
        tell("shutdown_complete")
    return Exit.OK


def _show(records: list[Message], verbose: bool) -> None:
    offsets: dict[tuple[str, int], list[int]] = {}
    for each in records:
        topic, partition, offset = each.topic(), each.partition(), each.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        offsets.setdefault((topic, partition), []).append(offset)
        if verbose:
            key, value = each.key(), each.value()
            tell(
                "record_data",
                key=key.decode("utf-8", "replace") if key is not None else None,
                value=value.decode("utf-8", "replace") if value is not None else None,
                topic=topic,
                partition=partition,
                offset=offset,
            )
    tell(
        "records_consumed",
        count=len(records),
        partitions=[
            {
                "topic": topic,
                "partition": partition,
                "count": len(found),
                "minOffset": min(found),
                "maxOffset": max(found),
            }
            for (topic, partition), found in offsets.items()
        ],
    )


def _commit(consumer: Consumer) -> None:
    from confluent_kafka import KafkaException

    try:
        committed = consumer.commit(asynchronous=False) or []
    except KafkaException as error:
        tell("offsets_committed", offsets=[], success=False, error=str(error.args[0]))
        return
    offsets = [
        {"topic": each.topic, "partition": each.partition, "offset": each.offset} for each in committed
    ]
    tell("offsets_committed", offsets=offsets, success=True)
