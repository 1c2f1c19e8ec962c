"""`headrace backlog advise`: what would help a group that is behind, from measured rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import times
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.backlog.advise import Advice, Facts

EXAMPLES = options.examples(
    "headrace backlog advise billing",
    "headrace backlog advise billing --topic orders --within 10m --window 60s",
    "headrace backlog advise billing --json | jq '.advice[0].command'",
)


def advise(
    group: options.Group,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC",
            help="Only this topic; may be repeated.",
            autocompletion=options.complete_topic,
        ),
    ] = None,
    within: Annotated[
        str, typer.Option("--within", metavar="DURATION", help="How soon the group is to have caught up.")
    ] = "30m",
    window: Annotated[
        str,
        typer.Option(
            "--window", metavar="DURATION", help="How long to measure; longer than between two commits."
        ),
    ] = "20s",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Measure the group for a while, and say what would help: each with its arithmetic and the command for it.

    More members or partitions, larger batches, a slow member, a hot key, a record that is never handled, longer retention, a divert.
    Nothing is changed. Some of the unread records are read, without a group, to see their keys.
    """
    length, wanted = times.seconds_of(window), times.seconds_of(within)
    if length <= 0 or wanted <= 0:
        raise Misuse("--window and --within take durations above 0, such as 20s and 30m.")
    from headrace.backlog.advise import advise as judge
    from headrace.backlog.facts import measure
    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.groups import describe
    from headrace.cli.cluster.lag import metering
    from headrace.cli.view.progress import Progress
    from headrace.client.administration.topics import partitions_of

    cluster = connect(bootstrap, command_config)
    describe(cluster, group)
    for name in topic or ():
        cluster.call(partitions_of, [name])
    with (
        cluster.failures(),
        metering(cluster, length) as meter,
        Progress(f"Measuring {group} for {window}", None, "looks") as progress,
    ):
        facts = measure(cluster.session, meter, group, length, topic or (), lambda _: progress.advance(1))
    if not facts.lag.partitions:
        what = f" of {', '.join(topic)}" if topic else ""
        raise Failure(f"Group {group} has neither offsets nor members{what}, so there is nothing to measure.")
    found = judge(facts, wanted)
    if json:
        output.json_document({**facts.lag.as_json(), "advice": [each.as_json() for each in found]})
    else:
        _show(facts, found, wanted)


def _show(facts: Facts, found: list[Advice], within: float) -> None:
    from headrace.backlog.advise import is_draining_in_time
    from headrace.cli.view.lag import rate

    lag = facts.lag
    oldest = "" if not lag.seconds else f", the oldest {times.show_seconds(lag.seconds)} old"
    line = f"Group {lag.group_id} is {lag.state.value}: {lag.records:,} unread in {output.count(len(lag.partitions), 'partition')}{oldest}"
    if lag.rate_in is not None and lag.rate_out is not None:
        line += f"; {rate(lag.rate_in)}/s arrive and {rate(lag.rate_out)}/s are read"
    print(f"{line}; {output.count(lag.members or 0, 'member')}.")
    if not lag.records:
        print("Nothing is unread, so nothing has to be done.")
    elif is_draining_in_time(lag, within):
        print(f"It catches up by itself in {times.show_seconds(lag.seconds_to_catch_up)}.")
    for number, each in enumerate(found, 1):
        print(f"\n{number}. {each.sentence}\n   {each.arithmetic}\n   → {each.command}")
