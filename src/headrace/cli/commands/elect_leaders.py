"""`headrace elect-leaders`: leadership back to preferred leaders, or to any replica that lives when all else is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.administration.topics import PartitionState

app = options.command_app("Give leadership back to preferred leaders.")


@app.command(
    epilog=options.examples(
        "headrace elect-leaders",
        "headrace elect-leaders orders payments:0,1",
        "headrace elect-leaders orders:3 --unclean",
    )
)
def elect_leaders(
    partitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC[:P,…]]…", help="Default: all.", autocompletion=options.complete_topic),
    ] = None,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="For partitions without a leader: elect any live replica, and lose what only the others have.",
        ),
    ] = False,
    execute: Annotated[
        bool,
        typer.Option("--execute", help="With --unclean: do it; without, only show what would be elected."),
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Let the first replica of each partition lead again, where another does.

    The cluster does so by itself every leader.imbalance.check.interval.seconds, when a broker misses too much of what it
    should lead. An unclean election is for partitions whose in-sync replicas are lost for good: acknowledged records that
    the elected replica does not have are gone. It needs the partitions named, and --execute.
    """
    if unclean and not partitions:
        raise Misuse("An unclean election loses records; name the partitions it is for: TOPIC or TOPIC:P,….")

    from headrace.cli.cluster import partition_names
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import elections, topics

    cluster = connect(bootstrap, command_config)
    chosen = partition_names.resolve(cluster, partitions) if partitions else None
    if unclean and not execute:
        _preview(cluster.call(topics.partition_states, chosen or []), json)
        return
    kind = elections.UNCLEAN if unclean else elections.PREFERRED
    outcomes = cluster.call(elections.elect, kind, chosen)
    elected = [key for key, outcome in outcomes.items() if outcome is None]
    failed = {
        key: outcome
        for key, outcome in outcomes.items()
        if outcome is not None and not elections.not_needed(outcome)
    }
    leaders = {(p.topic, p.partition): p.leader for p in cluster.call(topics.partition_states, elected)}
    if json:
        output.json_document(
            {
                "elected": [{"topic": t, "partition": p, "leader": leaders[t, p]} for t, p in elected],
                "failed": [
                    {"topic": t, "partition": p, "reason": str(refused)} for (t, p), refused in failed.items()
                ],
            }
        )
    elif elected:
        output.table(("TOPIC", "PARTITION", "LEADER"), [(t, p, leaders[t, p]) for t, p in elected])
    elif not failed:
        output.note("Nothing to do: " + ("every one has a leader." if unclean else "preferred leaders lead."))
    if failed:
        raise Failure(" ".join(f"{t}-{p}: {refused}" for (t, p), refused in failed.items()))


def _preview(partitions: list[PartitionState], json: bool) -> None:
    rows = [
        (p.topic, p.partition, output.ids(p.replicas), output.ids(p.isr))
        for p in partitions
        if p.leader is None
    ]
    if json:
        output.json_document(
            {"executed": False, "partitions": [{"topic": row[0], "partition": row[1]} for row in rows]}
        )
        return
    if not rows:
        output.note("Nothing to do: every one has a leader.")
        return
    output.table(("TOPIC", "PARTITION", "REPLICAS", "LAST IN SYNC"), rows)
    output.note(
        "Nothing was changed; add --execute to elect any live replica. Records that only the replicas last in sync "
        "have are lost then; bring one of those brokers back instead if you can."
    )
