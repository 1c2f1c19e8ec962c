"""kafka-share-groups.sh"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka import group_actions, group_tables
from headrace.cli.kafka.arguments import KafkaParser
from headrace.cli.parsing import times

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

_ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
_SCENARIOS = ("to_datetime", "to_earliest", "to_latest")
STATES = ("Stable", "Empty", "Dead")


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    chosen = [action for action in _ACTIONS if getattr(options, action)]
    if len(chosen) != 1:
        flags = ", ".join(f"--{action.replace('_', '-')}" for action in _ACTIONS)
        parser.error(f"Command must include exactly one action: {flags}.")
    _check(parser, options)
    try:
        from headrace.cli.cluster.connection import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        return {
            "list": _list,
            "describe": _describe,
            "delete": _delete,
            "reset_offsets": _reset,
            "delete_offsets": _delete_offsets,
        }[chosen[0]](cluster, options)
    except Failure as failure:
        print(f"\nError: Executing share group command failed due to {failure.sentence}")
        return Exit.FAILED


def _parser() -> KafkaParser:
    parser = KafkaParser(
        "share-groups", "List, describe and delete share groups, and reset or delete their offsets."
    )
    parser.bootstrap()
    parser.command_config()
    parser.flag("--group", action="append", help="The share group.")
    parser.switch("--all-groups", help="All share groups.")
    parser.flag(
        "--topic", action="append", metavar="TOPIC[:P,…]", help="The topic, or some of its partitions."
    )
    parser.switch("--all-topics", help="All topics of the group.")
    parser.switch("--list", help="List all share groups.")
    parser.switch("--describe", help="Describe a share group, where it begins and its lag.")
    parser.switch("--delete", help="Delete a share group without members.")
    parser.switch("--reset-offsets", help="Have a share group without members begin elsewhere.")
    parser.switch("--delete-offsets", help="Have a share group without members forget topics.")
    parser.switch("--dry-run", help="Only show what would be reset.")
    parser.switch("--execute", help="Carry the reset out.")
    parser.flag("--to-datetime", help="Reset to a time: YYYY-MM-DDThh:mm:ss.sss")
    parser.switch("--to-earliest", help="Reset to the earliest offset.")
    parser.switch("--to-latest", help="Reset to the latest offset.")
    parser.switch("--members", help="With --describe: the members.")
    parser.switch("--verbose", help="With --describe: more columns.")
    parser.switch("--offsets", help="With --describe: start offsets and lag; the default.")
    parser.flag(
        "--state", nargs="?", const="", help="With --describe or --list: the states, or only some of them."
    )
    parser.flag("--timeout", type=int, help="Milliseconds to wait for a group.")
    return parser


def _check(parser: KafkaParser, options: Namespace) -> None:
    group_actions.check_targets(parser, options)
    if options.reset_offsets:
        has_scope = bool(options.topic or options.all_topics)
        group_actions.check_reset(parser, options, _SCENARIOS, has_scope=has_scope)


def _groups(cluster: Cluster, options: Namespace) -> list[str]:
    from headrace.client.administration import groups, share_groups

    if options.all_groups:
        return [each.group for each in cluster.call(groups.listings, (), (share_groups.TYPE,))]
    return sorted(set(options.group))


def _list(cluster: Cluster, options: Namespace) -> int:
    from headrace.cli.parsing.choices import several
    from headrace.client.administration import groups, share_groups

    states = several(options.state or None, STATES, "states")
    found = cluster.call(groups.listings, states, (share_groups.TYPE,))
    if options.state is None:
        for listing in found:
            print(listing.group)
    else:
        group_tables.listings(found, types=False, states=True)
    return Exit.OK


def _describe(cluster: Cluster, options: Namespace) -> int:
    from headrace.client.administration import share_groups

    for group in _groups(cluster, options):
        description = group_actions.describe(cluster, group)
        if description.type != share_groups.TYPE:
            raise Failure(f"Group {group} is not a share group.")
        if options.members:
            group_tables.share_members(description, verbose=options.verbose)
        elif options.state is not None:
            group_tables.share_state(description, cluster.nodes, verbose=options.verbose)
        else:
            places = cluster.call(share_groups.places, group)
            group_tables.share_offsets(group, places, verbose=options.verbose)
    return Exit.OK


def _delete(cluster: Cluster, options: Namespace) -> int:
    return group_actions.delete(cluster, _groups(cluster, options), "share groups")


def _reset(cluster: Cluster, options: Namespace) -> int:
    from headrace.cli.cluster import offset_reset
    from headrace.cli.cluster.offset_reset import Reset
    from headrace.client.administration import reset

    timestamp = None if options.to_datetime is None else times.milliseconds_of(options.to_datetime)
    target = reset.Target(earliest=options.to_earliest, latest=options.to_latest, timestamp=timestamp)
    wanted = Reset(target, [] if options.all_topics else options.topic)
    plans: dict[str, reset.Plan] = {}
    for group in _groups(cluster, options):
        if not cluster.call(reset.check_inactive, group):
            raise Failure(f"Group {group} not found.")
        plans[group] = offset_reset.plan(
            cluster, group, wanted, lambda sentence: print(f"\nWarn: {sentence}")
        )
        if options.execute and plans[group]:
            offset_reset.carry_out(cluster, group, plans[group])
    group_tables.plans(plans)
    return Exit.OK


def _delete_offsets(cluster: Cluster, options: Namespace) -> int:
    from headrace.client.administration import share_groups

    group, topics = options.group[0], [topic.partition(":")[0] for topic in options.topic]
    outcome = cluster.call(share_groups.forget, group, topics)
    width = max(15, *(len(topic) for topic in topics))
    print(f"\n{'TOPIC':<{width}} STATUS")
    for topic, refused in outcome.items():
        print(f"{topic:<{width}} {'Successful' if refused is None else f'Error: {refused}'}")
    return Exit.FAILED if any(outcome.values()) else Exit.OK
