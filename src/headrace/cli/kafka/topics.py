"""kafka-topics.sh"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure, did_you_mean
from headrace.cli.kafka.arguments import KafkaParser, note

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.configs import Setting
    from headrace.client.administration.topics import Partition, Topic

_COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    action = _action(parser, options)
    _check(parser, options)
    try:
        from headrace.cli.cluster.connection import connect

        action(connect(options.bootstrap_server, options.command_config), options)
    except Failure as failure:
        print(f"Error while executing topic command : {failure.sentence}")
        return Exit.FAILED
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("topics", "Create, delete, describe, or change a topic.")
    parser.bootstrap(broker_list=True)
    parser.command_config()
    parser.switch("--list", help="List all available topics.")
    parser.switch("--create", help="Create a new topic.")
    parser.switch("--delete", help="Delete a topic.")
    parser.switch("--alter", help="Alter the number of partitions.")
    parser.switch("--describe", help="List details for the given topics.")
    parser.flag("--topic", help="The topic; a regular expression except with --create.")
    parser.flag("--topic-id", help="The id of a topic to describe.")
    parser.flag(
        "--config", action="append", metavar="NAME=VALUE", help="A topic setting, with --create or --alter."
    )
    parser.flag(
        "--delete-config", action="append", metavar="NAME", help="A setting to take back, with --alter."
    )
    parser.flag("--partitions", old=("--partition",), type=int, help="The number of partitions.")
    parser.flag(
        "--replication-factor", old=("--replica",), type=int, help="The number of replicas of each partition."
    )
    parser.flag(
        "--replica-assignment", old=("--replica-assignment-list",), help="Brokers by partition: 1:2,2:3"
    )
    parser.switch("--under-replicated-partitions", help="With --describe: only under-replicated partitions.")
    parser.switch("--unavailable-partitions", help="With --describe: only partitions without a live leader.")
    parser.switch(
        "--under-min-isr-partitions", help="With --describe: only partitions below min.insync.replicas."
    )
    parser.switch("--at-min-isr-partitions", help="With --describe: only partitions at min.insync.replicas.")
    parser.switch("--topics-with-overrides", help="With --describe: only topics with settings of their own.")
    parser.switch("--if-exists", help="With --alter, --delete and --describe: only if the topic exists.")
    parser.switch("--if-not-exists", help="With --create: only if the topic does not exist.")
    parser.switch("--exclude-internal", help="With --list and --describe: without internal topics.")
    parser.flag("--partition-size-limit-per-response", type=int, help="The most partitions in one response.")
    parser.obsolete(
        {
            "--disable-rack-aware": "no longer exists and is ignored; racks are used when brokers have them.",
            "--force": "no longer exists and is ignored; no question is asked.",
        },
        takes_value=False,
    )
    return parser


def _action(parser: KafkaParser, options: Namespace) -> Callable[[Cluster, Namespace], None]:
    actions = {"list": _list, "describe": _describe, "create": _create, "alter": _alter, "delete": _delete}
    chosen = [name for name in actions if getattr(options, name)]
    if len(chosen) != 1:
        parser.error(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    return actions[chosen[0]]


def _check(parser: KafkaParser, options: Namespace) -> None:
    if not options.list and not options.describe and options.topic is None:
        parser.error('Missing required argument "[topic]"')
    if options.alter and not (options.partitions or options.config or options.delete_config):
        parser.error('Missing required argument "[partitions]"')
    if options.create and options.replica_assignment and (options.partitions or options.replication_factor):
        parser.error(
            'Option "[replica-assignment]" can\'t be used with option "[partitions]" or "[replication-factor]"'
        )
    if options.replication_factor is not None and not options.create:
        parser.error('Option "[replication-factor]" can only be used with option "[create]"')


def _create(cluster: Cluster, options: Namespace) -> None:
    from confluent_kafka import KafkaError

    from headrace.cli.parsing.assignment_file import replica_assignment
    from headrace.client.administration import topics

    if "." in options.topic or "_" in options.topic:
        print(_COLLISION)
    if options.replication_factor is not None and not 1 <= options.replication_factor <= 32767:
        raise Failure("The replication factor must be between 1 and 32767 inclusive")
    if options.partitions is not None and options.partitions < 1:
        raise Failure("The partitions must be greater than 0")
    refused = cluster.call(
        topics.create,
        [options.topic],
        partitions=options.partitions,
        replication_factor=options.replication_factor,
        assignment=replica_assignment(options.replica_assignment) if options.replica_assignment else None,
        config=_config(options.config),
    ).get(options.topic)
    if refused is None:
        print(f"Created topic {options.topic}.")
    elif not (options.if_not_exists and refused.code == KafkaError.TOPIC_ALREADY_EXISTS):
        raise Failure(str(refused))


def _list(cluster: Cluster, options: Namespace) -> None:
    print("\n".join(_matching(cluster, options)))


def _alter(cluster: Cluster, options: Namespace) -> None:
    from headrace.cli.cluster import settings
    from headrace.cli.parsing.assignment_file import replica_assignment
    from headrace.client.administration import topics

    for topic in cluster.call(topics.describe, _existing(cluster, options)):
        if options.config or options.delete_config:
            note("Topic settings are altered by kafka-configs.sh in today's Kafka.")
            settings.alter(cluster, "topic", topic.name, _config(options.config), options.delete_config or [])
            print(f"Updated config for topic {topic.name}.")
        if options.partitions is not None:
            assignment = None
            if options.replica_assignment:
                assignment = replica_assignment(options.replica_assignment)[len(topic.partitions) :]
            cluster.call(topics.add_partitions, topic.name, options.partitions, assignment)


def _delete(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import topics

    names = _existing(cluster, options)
    for refused in cluster.call(topics.delete, names).values() if names else ():
        raise Failure(str(refused))


def _describe(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import configs, topics
    from headrace.client.administration.eligible import eligible_replicas

    found = cluster.call(topics.describe, _existing(cluster, options))
    if options.topic_id is not None:
        found = [topic for topic in found if topic.topic_id == options.topic_id]
        if not found and not options.if_exists:
            raise Failure(f"TopicId '{options.topic_id}' does not exist as expected")
    names = [topic.name for topic in found]
    settings = cluster.call(configs.describe, "topic", names)
    eligible = cluster.call(eligible_replicas, names)
    live = {node.id for node in cluster.nodes}
    wanted = _partition_filter(options, live)
    for topic in found:
        own = settings[topic.name]
        if wanted is None and (not options.topics_with_overrides or any(not s.is_default for s in own)):
            print(_topic_line(topic, own))
        if options.topics_with_overrides:
            continue
        for partition in topic.partitions:
            if wanted is None or wanted(partition, _min_isr(own)):
                print(_partition_line(topic.name, partition, eligible.get((topic.name, partition.id))))


def _partition_filter(options: Namespace, live: set[int]) -> Callable[[Partition, int], bool] | None:
    """Which partitions a report shows; None when it shows whole topics."""
    tests: list[Callable[[Partition, int], bool]] = []
    if options.under_replicated_partitions:
        tests.append(lambda p, _: len(p.isr) < len(p.replicas))
    if options.unavailable_partitions:
        tests.append(lambda p, _: p.leader not in live)
    if options.under_min_isr_partitions:
        tests.append(lambda p, least: p.leader is None or len(p.isr) < least)
    if options.at_min_isr_partitions:
        tests.append(lambda p, least: len(p.isr) == least)
    return (lambda p, least: any(test(p, least) for test in tests)) if tests else None


def _topic_line(topic: Topic, settings: list[Setting]) -> str:
    own = ",".join(f"{s.name}={s.value}" for s in settings if not s.is_default)
    return (
        f"Topic: {topic.name}\tTopicId: {topic.topic_id}\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {topic.replication_factor}\tConfigs: {own}"
    )


def _partition_line(topic: str, partition: Partition, eligible: tuple[list[int], list[int]] | None) -> str:
    def ids(brokers: list[int]) -> str:
        return ",".join(map(str, brokers))

    leader = "none" if partition.leader is None else partition.leader
    elr, last_known = ("N/A", "N/A") if eligible is None else map(ids, eligible)
    return (
        f"\tTopic: {topic}\tPartition: {partition.id}\tLeader: {leader}\tReplicas: {ids(partition.replicas)}"
        f"\tIsr: {ids(partition.isr)}\tElr: {elr}\tLastKnownElr: {last_known}"
    )


def _min_isr(settings: list[Setting]) -> int:
    return next((int(s.value or 1) for s in settings if s.name == "min.insync.replicas"), 1)


def _config(arguments: list[str] | None) -> dict[str, str]:
    pairs = [re.split(r"\s*=\s*", argument) for argument in arguments or []]
    if any(len(pair) != 2 for pair in pairs):
        raise Failure('Invalid topic config: all configs to be added must be in the format "key=val".')
    return {key.strip(): value.strip() for key, value in pairs}


def _existing(cluster: Cluster, options: Namespace) -> list[str]:
    found = _matching(cluster, options)
    if not found and options.topic and options.topic_id is None and not options.if_exists:
        hint = did_you_mean(options.topic, _matching(cluster, Namespace(topic=None, exclude_internal=False)))
        raise Failure(f"Topic '{options.topic}' does not exist as expected{'.' + hint if hint else ''}")
    return found


def _matching(cluster: Cluster, options: Namespace) -> list[str]:
    from headrace.client.administration import topics

    names = cluster.call(topics.names, internal=not options.exclude_internal)
    if options.topic is None or getattr(options, "topic_id", None) is not None:
        return names
    # As Kafka's include lists: commas are alternatives, and the whole name must match.
    expression = options.topic.strip().strip("\"'").replace(",", "|").replace(" ", "")
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise Failure(f"{expression} is an invalid regex: {error}.") from None
    return [name for name in names if pattern.fullmatch(name)]
