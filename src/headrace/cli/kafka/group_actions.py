"""What kafka-consumer-groups.sh and kafka-share-groups.sh do in the same way."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.groups import Description


def check_targets(parser: KafkaParser, options: Namespace) -> None:
    """Each action says which groups and topics it is for, and --describe shows one thing."""
    for action in ("describe", "delete", "reset_offsets"):
        if getattr(options, action) and not options.group and not options.all_groups:
            parser.error(
                f"Option [{action.replace('_', '-')}] takes one of these options: [group], [all-groups]"
            )
    if options.delete_offsets and not (options.group and options.topic):
        parser.error("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.describe and sum((options.members, options.offsets, options.state is not None)) > 1:
        parser.error("Option [describe] takes at most one of these options: [members], [offsets], [state]")


def check_reset(
    parser: KafkaParser, options: Namespace, scenarios: Sequence[str], *, has_scope: bool
) -> None:
    if options.dry_run and options.execute:
        parser.error("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if sum(getattr(options, scenario) not in (None, False) for scenario in scenarios) != 1:
        names = ", ".join(f"[{scenario.replace('_', '-')}]" for scenario in scenarios)
        parser.error(f"Option '[reset-offsets]' requires one of the following scenarios: {names}")
    if not has_scope:
        parser.error("One of the reset scopes should be defined: --all-topics, --topic.")
    if not options.dry_run and not options.execute:
        print("WARN: No action will be performed as the --execute option is missing.", file=sys.stderr)


def describe(cluster: Cluster, group: str) -> Description:
    from headrace.cli.cluster.connection import Refused
    from headrace.client.administration import groups
    from headrace.wire.errors import ErrorCode

    try:
        return cluster.call(groups.describe, group)
    except Refused as refused:
        if refused.error == ErrorCode.GROUP_ID_NOT_FOUND:
            raise Failure(f"Group {group} not found.") from None
        raise


def delete(cluster: Cluster, chosen: Iterable[str], kind: str) -> int:
    """Delete groups one by one; `kind` is what they are called in the report."""
    from headrace.cli.cluster.connection import Refused
    from headrace.client.administration import groups

    failed: dict[str, str] = {}
    deleted: list[str] = []
    for group in chosen:
        try:
            cluster.call(groups.delete, group)
            deleted.append(group)
        except Refused as refused:
            failed[group] = refused.sentence
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failed:
        print(f"Deletion of requested {kind} ({names}) was successful.")
        return Exit.OK
    print(f"\nError: Deletion of some {kind} failed:")
    for group, why in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {why}")
    if deleted:
        print(f"\nThese {kind} were deleted successfully: {names}")
    return Exit.FAILED
