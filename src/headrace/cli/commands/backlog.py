"""`headrace backlog`: what would help a group that is behind; a divert that serves new records at once while the backlog drains."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.commands.backlog_advise import EXAMPLES, advise
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import times
from headrace.cli.view import backlog as view
from headrace.cli.view import output
from headrace.cli.view.progress import Progress

if TYPE_CHECKING:
    from headrace.backlog.backlogs import Backlogs
    from headrace.backlog.states import Way

app = options.command_app(
    "Help a group that is behind: divert its backlog and join it again; see what would help."
)
app.command(epilog=EXAMPLES)(advise)

TopicOption = Annotated[
    str,
    typer.Option("--topic", "-t", metavar="TOPIC", autocompletion=options.complete_topic),
]


@app.command(
    epilog=options.examples(
        "headrace backlog divert billing --topic orders",
        "headrace backlog divert billing --topic orders --copy --wait 2m",
        "headrace backlog divert billing --topic orders --fresh",
    )
)
def divert(
    group: options.Group,
    topic: TopicOption,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Copy the backlog, so that unmodified consumers stop at the cut."),
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Send new records to a fresh topic; for producers made with routes=True."
        ),
    ] = False,
    other_groups_follow: Annotated[
        bool,
        typer.Option("--other-groups-follow", help="With --fresh: other groups read the fresh topic, too."),
    ] = False,
    wait: Annotated[
        str, typer.Option("--wait", metavar="DURATION", help="Give the group's members time to stop.")
    ] = "0s",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Serve new records at once from now on, while the backlog drains beside them.

    The group has to be stopped; it goes on from the cut, the end of each partition at this moment. GROUP.backlog owns what lies before:
    drain it with more instances of your consumer under that name, which read on past the cut (what they read there is handled
    twice), or with headrace.backlog.drain, which stops at the cut. With --copy, GROUP.backlog reads a topic that holds the
    backlog and nothing else. Run it again after a crash: it goes on where it was.
    """
    way = _way(copy, fresh)
    if other_groups_follow and not fresh:
        raise Misuse("--other-groups-follow belongs to --fresh.")
    patience = times.seconds_of(wait)
    with _backlogs(bootstrap, command_config) as backlogs:
        if patience:
            output.note(f"Waiting up to {wait} until the members of {group} have stopped.")
        with Progress("Copying", None, "records", shown=copy and not json) as progress:
            done = backlogs.divert(
                group,
                topic,
                way,
                wait=patience,
                other_groups_follow=other_groups_follow,
                copied=progress.advance,
            )
    if json:
        output.json_document(done.as_document())
    else:
        print("\n".join(view.diverted(done)))


@app.command(
    epilog=options.examples(
        "headrace backlog status",
        "headrace backlog status billing --topic orders --watch",
        "headrace backlog status billing --json",
    )
)
def status(
    group: Annotated[
        str | None,
        typer.Argument(metavar="[GROUP]", help="Default: all.", autocompletion=options.complete_group),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", metavar="TOPIC", autocompletion=options.complete_topic),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option("--interval", min=0.2, help="Seconds between looks.")] = 2.0,
    window: Annotated[
        str, typer.Option("--window", metavar="DURATION", help="Looks of this long make rates and states.")
    ] = "10s",
    partitions: Annotated[bool, typer.Option("--partitions", help="Show each partition.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show diverts: both sides with lag, state, rates and forecasts, what is wrong, and what to do next.

    Without --watch it looks for one --window, since a rate takes two looks.
    """
    length = times.seconds_of(window)
    if length <= 0:
        raise Misuse("--window takes a duration above 0, such as 10s.")
    with _backlogs(bootstrap, command_config) as backlogs, backlogs.meter(length) as meter:
        deadline: float | None = None
        while True:
            found = backlogs.diverts(group, topic)
            if not found and (group is not None or topic is not None):
                what = " ".join(
                    part
                    for part in (
                        f"of group {group}" if group else "",
                        f"of topic {topic}" if topic else "",
                    )
                    if part
                )
                raise Failure(f"There is no divert {what}; 'headrace backlog status' shows all there are.")
            looks = [meter.look(each) for each in found]
            now = time.monotonic()
            at_end = all(each.state.over for each in found) or (deadline is not None and now >= deadline)
            deadline = deadline or now + length
            if watch or at_end:
                if json and watch:
                    print("\n".join(output.json_line(each.as_json()) for each in looks), flush=True)
                elif json:
                    output.json_document([each.as_json() for each in looks])
                elif looks:
                    print("\n\n".join("\n".join(view.status(each, partitions)) for each in looks), flush=True)
                else:
                    output.note("Nothing is diverted.")
            if at_end and not watch:
                return
            time.sleep(interval if watch else min(1.0, length))


@app.command(
    epilog=options.examples(
        "headrace backlog join billing --topic orders",
        "headrace backlog join billing --topic orders --wait 1h",
    )
)
def join(
    group: options.Group,
    topic: TopicOption,
    wait: Annotated[
        str, typer.Option("--wait", metavar="DURATION", help="Wait so long for the backlog to drain.")
    ] = "0s",
    quiet: Annotated[
        str,
        typer.Option(
            "--quiet",
            metavar="DURATION",
            help="After --fresh: nothing written for so long means that every producer has left the fresh topic.",
        ),
    ] = "3s",
    allow_repeats: Annotated[
        bool, typer.Option("--allow-repeats", help="Join although the group was moved back before the cut.")
    ] = False,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Join although retention deleted unread records.")
    ] = False,
    any_order: Annotated[
        bool,
        typer.Option("--any-order", help="After --fresh: let the topic be read before the fresh one is."),
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """End the divert, when offsets prove that nothing was skipped and nothing is left over; refused while backlog is left."""
    patience, silence = times.seconds_of(wait), times.seconds_of(quiet)
    with _backlogs(bootstrap, command_config) as backlogs:
        if patience:
            output.note(f"Waiting up to {wait} until the backlog is drained and its readers have stopped.")
        done = backlogs.join(
            group,
            topic,
            wait=patience,
            quiet=silence,
            allow_repeats=allow_repeats,
            allow_loss=allow_loss,
            any_order=any_order,
        )
    if json:
        output.json_document(done.as_document())
    else:
        print("\n".join(view.joined(done)))


@app.command(
    epilog=options.examples(
        "headrace backlog undo billing --topic orders",
        "headrace backlog undo billing --topic orders --allow-repeats",
    )
)
def undo(
    group: options.Group,
    topic: TopicOption,
    allow_repeats: Annotated[
        bool, typer.Option("--allow-repeats", help="Go back although records are handled a second time.")
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Give the divert up: the group alone goes on, in each partition at the first record that neither side has handled.

    That is where it was before, if neither side has moved. Both groups have to be stopped. Nothing is skipped; when records would be
    handled a second time it is refused, unless you allow it.
    """
    with _backlogs(bootstrap, command_config) as backlogs:
        done = backlogs.undo(group, topic, allow_repeats=allow_repeats)
    if json:
        output.json_document(done.as_document())
    else:
        print("\n".join(view.undone(done)))


def _way(copy: bool, fresh: bool) -> Way:
    from headrace.backlog.states import Way

    if copy and fresh:
        raise Misuse("Say --copy or --fresh, not both.")
    return Way.COPY if copy else Way.FRESH if fresh else Way.OFFSETS


@contextmanager
def _backlogs(bootstrap: str, command_config: Path | None) -> Iterator[Backlogs]:
    import logging

    from headrace.backlog.backlogs import Backlogs
    from headrace.cli.cluster.connection import connect

    # What librdkafka says of connections is a matter of waiting here; what a divert has to say is for the user.
    logging.basicConfig(level=logging.WARNING, format="headrace: %(message)s")
    logging.getLogger("headrace.client.connection").setLevel(logging.CRITICAL)
    cluster = connect(bootstrap, command_config)
    with cluster.failures(), Backlogs(cluster.settings) as backlogs:
        yield backlogs
