"""kafka-consumer-groups.sh"""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure, Misuse
from headrace.cli.kafka import group_actions, group_tables
from headrace.cli.kafka.arguments import KafkaParser
from headrace.cli.parsing import times

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.cli.cluster.offset_reset import Reset
    from headrace.client.administration.reset import Plan

_ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets", "validate_regex")
_SCENARIOS = (
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "to_earliest",
    "to_latest",
    "to_current",
    "from_file",
)


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    action = _action(parser, options)
    _check(parser, options)
    if action == "validate_regex":
        return _validate_regex(options.validate_regex)
    try:
        from headrace.cli.cluster.connection import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        return {
            "list": _list,
            "describe": _describe,
            "delete": _delete,
            "reset_offsets": _reset,
            "delete_offsets": _delete_offsets,
        }[action](cluster, options)
    except Misuse as misuse:
        parser.error(misuse.sentence)
    except Failure as failure:
        print(f"\nError: Executing consumer group command failed due to {failure.sentence}")
        return Exit.FAILED


def _parser() -> KafkaParser:
    parser = KafkaParser(
        "consumer-groups", "List, describe and delete consumer groups, and reset or delete their offsets."
    )
    parser.bootstrap(broker_list=True)
    parser.command_config()
    parser.flag("--group", action="append", help="The consumer group.")
    parser.switch("--all-groups", help="All consumer groups.")
    parser.flag(
        "--topic", action="append", metavar="TOPIC[:P,…]", help="The topic, or some of its partitions."
    )
    parser.switch("--all-topics", help="All topics the group has committed.")
    parser.switch("--list", help="List all consumer groups.")
    parser.switch("--describe", help="Describe a group and its lag.")
    parser.switch("--delete", help="Delete a group.")
    parser.switch("--reset-offsets", help="Reset the offsets of a group without members.")
    parser.switch("--delete-offsets", help="Delete the offsets of a group for a topic.")
    parser.flag("--validate-regex", metavar="REGEX", help="Check a regular expression for subscriptions.")
    parser.switch("--dry-run", help="Only show what would be reset.")
    parser.switch("--execute", help="Carry the reset out.")
    parser.switch("--export", help="Print the reset as CSV.")
    parser.flag("--to-offset", type=int, help="Reset to an offset.")
    parser.flag("--from-file", type=Path, metavar="FILE", help="Reset to the offsets in a CSV file.")
    parser.flag("--to-datetime", help="Reset to a time: YYYY-MM-DDThh:mm:ss.sss")
    parser.flag("--by-duration", help="Reset to some time ago: PnDTnHnMnS")
    parser.switch("--to-earliest", help="Reset to the earliest offset.")
    parser.switch("--to-latest", help="Reset to the latest offset.")
    parser.switch("--to-current", help="Reset to the current offset.")
    parser.flag(
        "--shift-by", type=int, help="Reset by shifting the current offset by n, which may be negative."
    )
    parser.switch("--members", help="With --describe: the members.")
    parser.switch("--verbose", help="With --describe: more columns.")
    parser.switch("--offsets", help="With --describe: offsets and lag; the default.")
    parser.flag(
        "--state", nargs="?", const="", help="With --describe or --list: the states, or only some of them."
    )
    parser.flag("--type", nargs="?", const="", help="With --list: the types, or only some of them.")
    parser.flag("--timeout", type=int, help="Milliseconds to wait for a group.")
    parser.obsolete({"--new-consumer": "is ignored: there is one consumer."}, takes_value=False)
    return parser


def _action(parser: KafkaParser, options: Namespace) -> str:
    chosen = [action for action in _ACTIONS if getattr(options, action)]
    if len(chosen) != 1:
        flags = ", ".join(f"--{action.replace('_', '-')}" for action in _ACTIONS)
        parser.error(f"Command must include exactly one action: {flags}")
    return chosen[0]


def _check(parser: KafkaParser, options: Namespace) -> None:
    group_actions.check_targets(parser, options)
    if options.delete and options.topic:
        parser.error("The consumer does not support topic-specific offset deletion from a consumer group.")
    if options.reset_offsets:
        has_scope = bool(options.from_file or options.topic or options.all_topics)
        group_actions.check_reset(parser, options, _SCENARIOS, has_scope=has_scope)


def _groups(cluster: Cluster, options: Namespace) -> list[str]:
    from headrace.client.administration import groups

    if options.all_groups:
        return [listing.group for listing in cluster.call(groups.listings)]
    chosen: list[str] = options.group
    return chosen


def _list(cluster: Cluster, options: Namespace) -> int:
    from headrace.cli.parsing.choices import several
    from headrace.client.administration import groups

    states = several(options.state or None, groups.STATES, "states")
    types = several(options.type or None, groups.TYPES, "types")
    found = cluster.call(groups.listings, states, types)
    if options.state is None and options.type is None:
        for listing in found:
            print(listing.group)
    else:
        group_tables.listings(found, types=options.type is not None, states=options.state is not None)
    return Exit.OK


def _describe(cluster: Cluster, options: Namespace) -> int:
    from headrace.client.administration import lag

    for group in sorted(set(_groups(cluster, options))):
        description = group_actions.describe(cluster, group)
        if options.members:
            group_tables.members(description, verbose=options.verbose)
        elif options.state is not None:
            group_tables.state(description, cluster.nodes, verbose=options.verbose)
        else:
            group_tables.offsets(
                description, cluster.call(lag.of_group, description), verbose=options.verbose
            )
    return Exit.OK


def _delete(cluster: Cluster, options: Namespace) -> int:
    return group_actions.delete(cluster, _groups(cluster, options), "consumer groups")


def _reset(cluster: Cluster, options: Namespace) -> int:
    from headrace.cli.cluster import offset_reset
    from headrace.cli.parsing import offsets_file
    from headrace.client.administration import reset

    plans: dict[str, Plan] = {}
    code = Exit.OK
    for group in _groups(cluster, options):
        try:
            cluster.call(reset.check_inactive, group)
        except Failure as failure:
            print(f"\nError: {failure.sentence}")
            code = Exit.FAILED
            continue
        plans[group] = offset_reset.plan(cluster, group, _wanted(options), _warn)
        if options.from_file is not None and not plans[group]:
            print(f"\nError: No reset plan for group {group} found")
        if options.execute and plans[group]:
            offset_reset.carry_out(cluster, group, plans[group])
    if options.export:
        print(offsets_file.text(plans))
    else:
        group_tables.plans(plans)
    return code


def _wanted(options: Namespace) -> Reset:
    from headrace.cli.cluster.offset_reset import Reset
    from headrace.client.administration.reset import Target

    if options.from_file is not None:
        return Reset(options.from_file)
    timestamp = None
    if options.to_datetime is not None:
        timestamp = times.milliseconds_of(options.to_datetime)
    elif options.by_duration is not None:
        timestamp = round((time.time() - times.seconds_of(options.by_duration)) * 1000)
    target = Target(
        options.to_earliest,
        options.to_latest,
        options.to_current,
        options.to_offset,
        options.shift_by,
        timestamp,
    )
    return Reset(target, [] if options.all_topics else options.topic)


def _delete_offsets(cluster: Cluster, options: Namespace) -> int:
    from headrace.cli.cluster import partition_names
    from headrace.client.administration import group_offsets

    group = options.group[0]
    partitions = partition_names.resolve(cluster, options.topic)
    error, by_partition = cluster.call(group_offsets.delete, group, partitions)
    outcome = {p: by_partition.get(p, error) for p in partitions}
    group_tables.deleted_offsets(group, error, outcome)
    return Exit.FAILED if any(outcome.values()) else Exit.OK


def _validate_regex(expression: str) -> int:
    import re2

    try:
        re2.compile(expression)
        print(f"The regular expression `{expression}` is valid.")
    except re2.error as error:
        print(f"The regular expression `{expression}` is invalid: {error}.")
    return Exit.OK


def _warn(sentence: str) -> None:
    print(f"\nWarn: {sentence}")
