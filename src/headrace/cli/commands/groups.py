"""`headrace groups`: consumer groups and share groups, how far behind they are, and moving their offsets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import choices, times
from headrace.cli.view import output
from headrace.cli.view.groups import LAG_HEADER, Look, assignment_text, count, headline, lag_rows, look

if TYPE_CHECKING:
    from headrace.client.administration.reset import Plan

app = options.command_app("List, describe, reset and delete consumer groups and share groups.")


@app.command(
    "list", epilog=options.examples("headrace groups list", "headrace groups list --state stable,empty")
)
def list_(
    state: Annotated[
        str | None, typer.Option("--state", help="Only groups in these states, by commas.")
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", help="Only classic, consumer or share groups.")
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """List the groups with their state."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import groups

    states, types = (
        choices.several(state, groups.STATES, "states"),
        choices.several(type_, groups.ALL_TYPES, "types") or groups.ALL_TYPES,
    )
    found = connect(bootstrap, command_config).call(groups.listings, states, types)
    if json:
        output.json_document([{"group": g.group, "type": g.type, "state": g.state} for g in found])
    elif found:
        output.table(("GROUP", "TYPE", "STATE"), [(g.group, g.type, g.state) for g in found])
    else:
        output.note("There are no such groups.")


@app.command(
    epilog=options.examples("headrace groups describe billing", "headrace groups describe billing --watch")
)
def describe(
    groups: options.Groups,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.2, help="Seconds between looks, with --watch.")
    ] = 2.0,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show a group's state and how far behind it is, in records and in time."""
    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.groups import describe as described
    from headrace.cli.cluster.lag import metering

    cluster = connect(bootstrap, command_config)
    with metering(cluster) as meter:

        def look_at(group: str) -> Look:
            description = described(cluster, group)
            with cluster.failures():
                return look(description, meter.measure(group, description=description))

        if watch:
            from headrace.cli.view.group_watch import watch as show_again

            show_again(lambda: [look_at(group) for group in groups], interval, json=json)
            return
        looks = [look_at(group) for group in groups]
    if json:
        output.json_document(looks)
        return
    for number, one in enumerate(looks):
        print(("\n" if number else "") + headline(one))
        if one["partitions"]:
            print("\n".join(f"  {line}" for line in output.columns(LAG_HEADER, lag_rows(one))))


@app.command(epilog=options.examples("headrace groups members billing"))
def members(
    groups: options.Groups,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show who is in a group, on which host, with which partitions."""
    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.groups import describe as described

    cluster = connect(bootstrap, command_config)
    found = [described(cluster, group) for group in groups]
    if json:
        output.json_document(
            [
                {
                    "group": group.group,
                    "state": group.state,
                    "members": [
                        {
                            "member_id": m.member_id,
                            "instance_id": m.instance_id,
                            "client_id": m.client_id,
                            "host": m.host,
                            "epoch": m.epoch,
                            "assignment": [{"topic": t, "partition": p} for t, p in m.assignment],
                        }
                        for m in group.members
                    ],
                }
                for group in found
            ]
        )
        return
    for number, group in enumerate(found):
        print(
            ("\n" if number else "")
            + f"Group {group.group}: {group.state}, {count(len(group.members), 'member')}"
        )
        rows = [
            (
                m.member_id,
                m.host,
                m.client_id,
                m.instance_id,
                len(m.assignment),
                assignment_text(m.assignment),
            )
            for m in group.members
        ]
        if rows:
            header = ("MEMBER", "HOST", "CLIENT", "INSTANCE", "PARTITIONS", "ASSIGNMENT")
            print("\n".join(f"  {line}" for line in output.columns(header, rows)))


@app.command(
    "reset-offsets",
    epilog=options.examples(
        "headrace groups reset-offsets billing --topic orders --to-earliest",
        "headrace groups reset-offsets billing --topic orders:0,1 --shift-by -100 --execute",
        "headrace groups reset-offsets billing --all-topics --by-duration 2h --execute",
        "headrace groups reset-offsets billing --all-topics --to-current --export > plan.csv",
        "headrace groups reset-offsets billing --from-file plan.csv --execute",
    ),
)
def reset_offsets(
    group: options.Group,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:P,…]",
            help="May be repeated.",
            autocompletion=options.complete_topic,
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Every partition the group has committed.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="To what is committed now.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="To an offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="Forward by so many, or back (-N).")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime", metavar="TIME", help="To a time: 2024-05-31T12:00:00, UTC without a zone."
        ),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="DURATION", help="To some time ago: 90s, 2h, 7d, P1DT2H."),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", metavar="FILE", help="To the offsets in a CSV file, as --export writes."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without, only show what would change.")
    ] = False,
    export: Annotated[bool, typer.Option("--export", help="Print the new offsets as CSV.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Move a group that has no members to other offsets. Shows the plan; --execute carries it out."""
    values = (to_offset, shift_by, to_datetime, by_duration, from_file)
    if sum((to_earliest, to_latest, to_current, *(value is not None for value in values))) != 1:
        raise Misuse(
            "Say where to: exactly one of the --to-…, --shift-by, --by-duration and --from-file options."
        )
    if from_file is None and bool(topic) == all_topics:
        raise Misuse("Say which partitions: either --topic TOPIC[:P,…] or --all-topics.")
    timestamp = _timestamp(to_datetime, by_duration)

    from headrace.cli.cluster import groups, offset_reset
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing import offsets_file
    from headrace.client.administration import reset

    target = reset.Target(to_earliest, to_latest, to_current, to_offset, shift_by, timestamp)
    wanted = offset_reset.Reset(target if from_file is None else from_file, topic or [])
    cluster = connect(bootstrap, command_config)
    if not cluster.call(reset.check_inactive, group):
        absent = groups.unknown(cluster, group)
        if all_topics:
            raise absent
        output.note(f"{absent.sentence} It is made when offsets are committed for it.")
    plan = offset_reset.plan(cluster, group, wanted, output.note)
    if not plan:
        if from_file is not None:
            raise Failure(f"There is nothing to reset: {from_file} has no line for group '{group}'.")
        raise Failure(f"There is nothing to reset: group '{group}' has no committed offsets there.")
    before = cluster.call(reset.committed, group)
    if execute:
        offset_reset.carry_out(cluster, group, plan)
    if export:
        print(offsets_file.text({group: plan}), end="")
        return
    _show_plan(group, plan, {p: c.offset for p, c in before.items()}, executed=execute, json=json)


@app.command(epilog=options.examples("headrace groups delete billing"))
def delete(
    groups: options.Groups,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Delete groups without members, with their committed offsets."""
    from headrace.cli.cluster import groups as look_up
    from headrace.cli.cluster.connection import Refused, connect
    from headrace.client.administration.groups import delete as delete_group
    from headrace.wire.errors import ErrorCode

    cluster = connect(bootstrap, command_config)
    deleted = []
    for group in groups:
        try:
            cluster.call(delete_group, group)
        except Refused as refused:
            if refused.error == ErrorCode.GROUP_ID_NOT_FOUND:
                raise look_up.unknown(cluster, group) from None
            if refused.error == ErrorCode.NON_EMPTY_GROUP:
                raise Failure(f"Group '{group}' still has members; stop them first.") from None
            raise
        deleted.append(group)
        if not json:
            print(f"Deleted group {group}.")
    if json:
        output.json_document({"deleted": deleted})


def _timestamp(to_datetime: str | None, by_duration: str | None) -> int | None:
    if to_datetime is not None:
        return times.milliseconds_of(to_datetime)
    if by_duration is not None:
        import time

        return round((time.time() - times.seconds_of(by_duration)) * 1000)
    return None


def _show_plan(group: str, plan: Plan, before: Plan, *, executed: bool, json: bool) -> None:
    if json:
        changes = [
            {"topic": topic, "partition": partition, "from": before.get((topic, partition)), "to": offset}
            for (topic, partition), offset in plan.items()
        ]
        output.json_document({"group": group, "executed": executed, "offsets": changes})
        return
    rows = [(t, p, before.get((t, p)), offset) for (t, p), offset in plan.items()]
    output.table(("TOPIC", "PARTITION", "FROM", "TO"), rows)
    if executed:
        output.note(f"Group {group} was reset.")
    else:
        output.note("Nothing was changed; add --execute to do it.")
