"""`headrace reassign`: plan, start, watch and cancel moves of partitions between brokers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import times
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.log_dirs import DirectoryMove
    from headrace.client.administration.names import Partition
    from headrace.client.administration.placement import Assignment
    from headrace.client.administration.reassignments import Move, Progress

_DIRECTORIES_SECONDS = 30.0
"""How long replicas that are only being made may take until they can be moved between directories."""

app = options.command_app("Move partitions to other brokers: plan, execute, status, cancel.")

Plan = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The JSON file of 'plan', or of Kafka's own tool.")
]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; without, only show what would change.")]
Wait = Annotated[bool, typer.Option("--wait", help="Show the progress until every move is done.")]


@app.command(
    epilog=options.examples(
        "headrace reassign plan > plan.json",
        "headrace reassign plan --remove 3 > plan.json",
        "headrace reassign plan orders --replication-factor 3 > plan.json",
        "headrace reassign plan orders payments --brokers 4,5,6 > plan.json",
    )
)
def plan(
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC…]",
            help="Default: all, internal ones included.",
            autocompletion=options.complete_topic,
        ),
    ] = None,
    brokers: Annotated[
        str | None,
        typer.Option("--brokers", metavar="1,2,…", help="Where replicas may be. Default: every broker."),
    ] = None,
    remove: Annotated[str | None, typer.Option("--remove", metavar="3,…", help="Brokers to empty.")] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", min=1, max=32767, help="Default: as it is."),
    ] = None,
    ignore_racks: Annotated[
        bool, typer.Option("--ignore-racks", help="Do not spread replicas over racks.")
    ] = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Propose moves: as few as it takes to use every broker evenly, with replicas in different racks.

    Prints the moves as JSON, which 'execute' and Kafka's kafka-reassign-partitions.sh read, and a summary on stderr.
    A broker that is down keeps what it has unless it is removed.
    """
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing import assignment_file
    from headrace.client.administration import reassignments
    from headrace.client.administration.brokers import describe as describe_brokers
    from headrace.client.administration.placement import Place, TooFewBrokers
    from headrace.client.administration.placement import plan as make_plan

    named = _broker_ids("--brokers", brokers)
    removed = _broker_ids("--remove", remove) or set()
    cluster = connect(bootstrap, command_config)
    description = cluster.call(describe_brokers)
    current, others = _assignment(cluster, topics)
    # A broker that only appears in an assignment is down and no longer registered.
    known = {broker.id: Place(broker.id, broker.rack, broker.live) for broker in description.brokers}
    for replicas in current.values():
        for broker in replicas:
            known.setdefault(broker, Place(broker, None, False))
    for broker in sorted((named or set()) | removed):
        if broker not in known:
            raise Failure(f"There is no broker {broker}; there are {output.ids(sorted(known))}.")
    usable = [
        Place(place.broker, None if ignore_racks else place.rack, place.live)
        for place in known.values()
        if place.broker not in removed and (named is None or place.broker in named)
    ]
    try:
        target = make_plan(current, usable, replication_factor, fixed=others)
    except TooFewBrokers as error:
        raise Failure(str(error)) from None
    changed = {key: replicas for key, replicas in target.items() if replicas != current[key]}
    print(assignment_file.text(changed))
    _summarize(changed, current, cluster.call(reassignments.sizes, known, list(changed)) if changed else {})


@app.command(
    epilog=options.examples(
        "headrace reassign execute plan.json",
        "headrace reassign execute plan.json --execute --wait",
        "headrace reassign execute plan.json --execute --throttle 50000000 --rollback back.json",
    )
)
def execute(
    plan: Plan,
    execute: Execute = False,
    rollback: Annotated[
        Path | None,
        typer.Option("--rollback", metavar="FILE", help="Write the assignment as it is now, to go back to."),
    ] = None,
    additional: Annotated[
        bool, typer.Option("--additional", help="Although other moves are still under way.")
    ] = False,
    throttle: Annotated[
        int | None,
        typer.Option(
            "--throttle",
            metavar="BYTES",
            min=1024,
            help="Bytes per second that copying may take on each broker, until the moves are done.",
        ),
    ] = None,
    wait: Wait = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Start the moves of a plan. Shows them; --execute starts them.

    The partitions serve on while their new replicas copy; the old replicas are let go when the new ones are in sync. With
    --additional the same plan changes the throttle of moves under way. "log_dirs" in the plan moves replicas between the data
    directories of a broker: a directory for each replica, or "any".
    """
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing import assignment_file
    from headrace.client.administration import log_dirs, reassignments, throttles
    from headrace.client.administration.topics import partition_states

    target = assignment_file.read(plan)
    directories = assignment_file.read_directories(plan)
    cluster = connect(bootstrap, command_config)
    before = {p.key: p.replicas for p in cluster.call(partition_states, target)}
    moving = cluster.call(reassignments.moves)
    if moving and not additional:
        raise Failure(
            f"{output.count(len(moving), 'partition')} still on the move; wait ('headrace reassign status --wait'), cancel "
            "that, or add --additional."
        )
    if rollback is not None:
        _write(rollback, assignment_file.text(before))
    if execute:
        if throttle is not None:
            cluster.call(throttles.throttle, throttles.traffic(moving, target, before), throttle)
            cluster.call(throttles.throttle_directories, {place[2] for place in directories}, throttle)
        _fail_on(cluster.call(reassignments.start, target))
        for (topic, number, broker), refused in cluster.call(
            log_dirs.begin_moves, directories, _DIRECTORIES_SECONDS, lambda *_: None
        ).items():
            raise Failure(f"{topic}-{number} on broker {broker} cannot go to its directory: {refused}")
    _show_change(target, before, executed=execute, json=json)
    if directories and not json:
        here = cluster.call(log_dirs.found, directories)
        rows = [
            (topic, number, broker, here[topic, number, broker][0] or "-", path)
            for (topic, number, broker), path in sorted(directories.items())
        ]
        output.table(("TOPIC", "PARTITION", "BROKER", "FROM DIRECTORY", "TO DIRECTORY"), rows)
    if execute and wait:
        began = time.monotonic()
        _wait(cluster, shown=not json)
        if not json:
            took = times.show_seconds(time.monotonic() - began)
            output.note(f"Done: {output.count(len(target), 'partition')} moved in {took}.")
    elif execute and throttle is not None:
        output.note(
            "The throttle stays until 'headrace reassign status --wait' or 'reassign unthrottle' ends it."
        )


@app.command(
    epilog=options.examples(
        "headrace reassign status", "headrace reassign status --wait", "headrace reassign status --json"
    )
)
def status(
    wait: Wait = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show which partitions are on the move, and how much of their data has arrived.

    With --wait the throttle of the moves is taken off when they are done.
    """
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import log_dirs, reassignments

    cluster = connect(bootstrap, command_config)
    if wait:
        _wait(cluster, shown=not json)
    moving = cluster.call(reassignments.moves)
    progress = cluster.call(reassignments.progress, moving)
    between = cluster.call(log_dirs.moves)
    if json:
        found = [_as_json(move, progress[key]) for key, move in moving.items()]
        output.json_document([*found, *map(_directory_as_json, between)])
        return
    if between:
        output.table(
            ("TOPIC", "PARTITION", "BROKER", "TO DIRECTORY", "COPIED"),
            [
                (*each.place, each.target, f"{output.size(each.copied)} of {output.size(each.total)}")
                for each in between
            ],
        )
        if not moving:
            return
    if not moving:
        output.note("No partition is on the move.")
        return
    rows = [
        (
            move.topic,
            move.partition,
            output.ids(move.target),
            output.ids(move.adding),
            output.ids(move.removing),
            _percent(progress[key]),
            f"{output.size(progress[key].copied)} of {output.size(progress[key].total)}",
        )
        for key, move in moving.items()
    ]
    output.table(("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING", "DONE", "COPIED"), rows)


@app.command(
    epilog=options.examples(
        "headrace reassign cancel --all --execute", "headrace reassign cancel orders payments:0 --execute"
    )
)
def cancel(
    partitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC[:P,…]]…", autocompletion=options.complete_topic),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every move there is.")] = False,
    execute: Execute = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Take moves back that are not done: the new replicas are let go, the old ones stay. Shows them; --execute does it."""
    if bool(partitions) == all_:
        raise Misuse("Say which moves: either TOPIC or TOPIC:P,…, or --all.")

    from headrace.cli.cluster import partition_names
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import reassignments, throttles

    cluster = connect(bootstrap, command_config)
    moving = cluster.call(reassignments.moves)
    if partitions:
        chosen = set(partition_names.resolve(cluster, partitions))
        moving = {key: move for key, move in moving.items() if key in chosen}
    before = {key: move.target for key, move in moving.items()}
    after = {
        key: [broker for broker in move.replicas if broker not in move.adding] for key, move in moving.items()
    }
    if execute and moving:
        _fail_on(cluster.call(reassignments.cancel, moving))
        if not cluster.call(reassignments.moves):
            cluster.call(throttles.clear)
    if not moving and not json:
        output.note("No such partition is on the move.")
        return
    _show_change(after, before, executed=execute, json=json, done="cancelled")


@app.command(epilog=options.examples("headrace reassign unthrottle"))
def unthrottle(
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Take the throttle of moves off: off every broker, and off every topic that has one."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import throttles

    brokers, topics = connect(bootstrap, command_config).call(throttles.clear)
    if json:
        output.json_document({"brokers": brokers, "topics": topics})
    elif brokers or topics:
        print(f"No throttle any more on brokers {output.ids(brokers)} and topics {', '.join(topics) or '-'}.")
    else:
        output.note("There is no throttle.")


def _broker_ids(option: str, text: str | None) -> set[int] | None:
    if text is None:
        return None
    try:
        return {int(part) for part in text.split(",")}
    except ValueError:
        raise Misuse(f"{option} takes the numbers of brokers, such as 1,2,3, not '{text}'.") from None


def _assignment(cluster: Cluster, topics: list[str] | None) -> tuple[Assignment, Assignment]:
    """The replicas of the topics named (else all), and those of the rest, which weigh on the brokers too."""
    from headrace.client.administration import topics as admin

    everything = cluster.call(admin.names, internal=True)
    chosen = topics or everything
    if not chosen:
        raise Failure("There are no topics to place.")
    found = cluster.call(admin.describe, list(dict.fromkeys([*chosen, *everything])))
    mine: Assignment = {}
    rest: Assignment = {}
    for topic in found:
        for p in topic.partitions:
            (mine if topic.name in chosen else rest)[topic.name, p.id] = p.replicas
    return mine, rest


def _summarize(changed: Assignment, current: Assignment, sizes: dict[tuple[int, Partition], int]) -> None:
    if not changed:
        output.note("Nothing needs to move.")
        return
    arrivals = copied = 0
    for key, replicas in changed.items():
        new = len(set(replicas) - set(current[key]))
        arrivals += new
        copied += new * max((sizes.get((broker, key), 0) for broker in current[key]), default=0)
    lead = sum(replicas[0] != current[key][0] for key, replicas in changed.items())
    output.note(
        f"{len(changed)} of {output.count(len(current), 'partition')} change: {output.count(arrivals, 'replica')} to copy, "
        f"{output.size(copied)}; {output.count(lead, 'preferred leader')} change. "
        "Start it with 'headrace reassign execute PLAN --execute'."
    )


def _show_change(
    target: dict[Partition, list[int]],
    before: dict[Partition, list[int]],
    *,
    executed: bool,
    json: bool,
    done: str = "started",
) -> None:
    if json:
        changes = [
            {"topic": topic, "partition": number, "from": before[topic, number], "to": replicas}
            for (topic, number), replicas in sorted(target.items())
        ]
        output.json_document({"executed": executed, "partitions": changes})
        return
    rows = [
        (topic, number, output.ids(before[topic, number]), output.ids(replicas))
        for (topic, number), replicas in sorted(target.items())
    ]
    output.table(("TOPIC", "PARTITION", "FROM", "TO"), rows)
    if executed:
        output.note(
            f"{output.count(len(rows), 'move')} {done}; 'headrace reassign status' shows how far they are."
        )
    else:
        output.note("Nothing was changed; add --execute to do it.")


def _wait(cluster: Cluster, *, shown: bool) -> None:
    """A bar of the bytes that have arrived, until nothing moves any more."""
    from headrace.cli.view.progress import Progress
    from headrace.client.administration import log_dirs, reassignments, throttles

    moving = cluster.call(reassignments.moves)
    everything = cluster.call(reassignments.progress, moving)
    left = sum(each.total - each.copied for each in everything.values())
    with Progress("Moving", left, "bytes", shown=shown) as bar:
        arrived = 0
        while moving:
            now = cluster.call(reassignments.progress, moving)
            # What is no longer on the move has arrived.
            still = sum(each.total - each.copied for each in now.values())
            bar.advance(max(left - still - arrived, 0))
            arrived = max(left - still, arrived)
            time.sleep(0.25)
            moving = cluster.call(reassignments.moves)
        bar.advance(left - arrived)
    while cluster.call(log_dirs.moves):
        time.sleep(0.25)
    cluster.call(throttles.clear)


def _as_json(move: Move, progress: Progress) -> dict[str, Any]:
    return {
        "topic": move.topic,
        "partition": move.partition,
        "replicas": move.target,
        "adding": move.adding,
        "removing": move.removing,
        "copied": progress.copied,
        "total": progress.total,
    }


def _directory_as_json(move: DirectoryMove) -> dict[str, Any]:
    topic, number, broker = move.place
    return {
        "topic": topic,
        "partition": number,
        "broker": broker,
        "directory": move.target,
        "copied": move.copied,
        "total": move.total,
    }


def _percent(progress: Progress) -> str:
    return f"{100 * progress.copied // progress.total}%" if progress.total else "-"


def _fail_on(refusals: dict[Partition, Any]) -> None:
    if refusals:
        raise Failure(
            " ".join(f"{topic}-{number}: {refused}" for (topic, number), refused in refusals.items())
        )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n")
    except OSError as error:
        raise Failure(f"Cannot write {path}: {error.strerror}.") from None
