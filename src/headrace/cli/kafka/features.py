"""kafka-features.sh"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

COMMANDS = ("describe", "upgrade", "downgrade", "disable")


def run(arguments: list[str]) -> int:
    parser = KafkaParser("features", "Manage feature levels.")
    parser.bootstrap()
    parser.command_config()
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND", help=", ".join(COMMANDS))
    parser.flag(
        "--feature", action="append", default=[], help="upgrade, downgrade: FEATURE=LEVEL; disable: FEATURE."
    )
    parser.switch("--unsafe", help="downgrade, disable: even if metadata may be lost.")
    parser.switch("--dry-run", help="Validate, but do not perform.")
    options = parser.parse(arguments)
    try:
        if options.command is None:
            raise Failure(f"Say what to do: {', '.join(COMMANDS)}.")
        if options.command != "describe" and not options.feature:
            raise Failure(f"You must specify at least one feature to {options.command}")

        from headrace.cli.cluster.connection import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        if options.command == "describe":
            _describe(cluster)
            return Exit.OK
        return _update(cluster, options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED


def _describe(cluster: Cluster) -> None:
    from headrace.client.administration import features

    for each in cluster.call(features.describe):
        epoch = "-" if each.epoch is None else each.epoch
        print(
            f"Feature: {each.name}\tSupportedMinVersion: {each.lowest}\tSupportedMaxVersion: {each.highest}\t"
            f"FinalizedVersionLevel: {each.level}\tEpoch: {epoch}"
        )


def _update(cluster: Cluster, options: Namespace) -> int:
    from headrace.cli.cluster.connection import Refused
    from headrace.cli.parsing.properties import feature_level
    from headrace.client.administration import features

    if options.command == "disable":
        levels = dict.fromkeys(options.feature, 0)
    else:
        levels = dict(feature_level(text) for text in options.feature)
    kind = features.UPGRADE
    if options.command != "upgrade":
        kind = features.UNSAFE_DOWNGRADE if options.unsafe else features.SAFE_DOWNGRADE
    can = "can be " if options.dry_run else "was "
    verb = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}[options.command]
    try:
        cluster.call(features.update, levels, kind, dry_run=options.dry_run)
    except Refused as refused:
        for name, level in levels.items():
            to = "" if options.command == "disable" else f" to {level}"
            print(f"Could not {options.command} {name}{to}. {refused.sentence}")
        print(f"{len(levels)} out of {len(levels)} operation(s) failed.", file=sys.stderr)
        return Exit.FAILED
    for name, level in levels.items():
        print(f"{name} {can}{verb}" + ("." if options.command == "disable" else f" to {level}."))
    return Exit.OK
