"""How diverts look: what was done, how both sides stand, what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.backlog.states import Way
from headrace.cli.parsing import times
from headrace.cli.view import output
from headrace.cli.view.lag import rate

if TYPE_CHECKING:
    from headrace.backlog.divert import Divert
    from headrace.backlog.status import Side, Status

_HEADER = (
    "SIDE",
    "GROUP",
    "TOPIC",
    "STATE",
    "LAG",
    "BEHIND",
    "IN/S",
    "OUT/S",
    "DONE IN",
    "LOSS IN",
    "MEMBERS",
)
_RIGHT = ("LAG", "BEHIND", "IN/S", "OUT/S", "DONE IN", "LOSS IN")
_PARTITIONS = ("SIDE", "PARTITION", "COMMITTED", "END", "LAG", "STATE")


def diverted(divert: Divert) -> Iterator[str]:
    yield f"Group {divert.group} has {divert.records:,} records of {divert.topic} behind the cut:"
    rows = [(n, divert.before[n], cut, cut - divert.before[n]) for n, cut in sorted(divert.cut.items())]
    yield from (f"  {line}" for line in output.columns(("PARTITION", "COMMITTED", "CUT", "BACKLOG"), rows))
    again = f"--topic {divert.topic}"
    if divert.way is Way.FRESH:
        yield f"Producers made with routes=True write to {divert.fresh} from now on; others still write to {divert.topic}."
        yield f"Start {divert.group} again: some instances on {divert.fresh} for new records, some on {divert.topic} for the backlog."
    else:
        yield f"Start {divert.group} again: it goes on from the cut."
        yield f"Drain the backlog with instances of your consumer with group.id={divert.backlog_group} on topic {divert.backlog_topic},"
        yield f'or with headrace.backlog.drain(handler, …, group="{divert.group}", topic="{divert.topic}").'
    if divert.way is Way.OFFSETS:
        yield "Consumers other than drain read on past the cut, and what they read there is handled twice: stop them when it is drained."
    yield f"How it goes:  headrace backlog status {divert.group} {again} --watch"
    yield f"At its end:   headrace backlog join {divert.group} {again}"


def status(found: Status, partitions: bool) -> Iterator[str]:
    divert = found.divert
    since = datetime.fromtimestamp(divert.since, UTC).isoformat(timespec="seconds")
    yield f"{divert.topic} for {divert.group}: {divert.state} by {divert.way}, {divert.records:,} records of backlog, since {since}"
    if found.sides:
        yield from output.columns(_HEADER, [_row(each) for each in found.sides], _RIGHT)
    if partitions and found.sides:
        rows = [
            (side.what, each.partition.partition, each.committed, each.end, each.records, each.state.value)
            for side in found.sides
            for each in side.lag.partitions
        ]
        yield from output.columns(_PARTITIONS, rows)
    yield from (f"! {note}" for note in found.notes)
    yield f"Next: {found.next_step}"


def joined(divert: Divert) -> Iterator[str]:
    if divert.way is Way.FRESH:
        yield f"Joined: {divert.topic} was drained to its end, then {divert.fresh}; producers write to {divert.topic} again."
        if divert.proof.get("read_early"):
            yield f"{divert.proof['read_early']:,} records of {divert.topic} were read before {divert.fresh} was drained."
        yield f"Start {divert.group} on {divert.topic} alone. {divert.fresh} may be deleted: headrace topics delete {divert.fresh}"
        return
    yield f"Joined: {divert.group} reads {divert.topic} alone again. Committed by partition:"
    proof = divert.proof
    rows = [
        (
            number,
            divert.before[number],
            proof["backlog"].get(str(number)),
            proof["backlog_ends"].get(str(number)),
            cut,
            proof["group"].get(str(number)),
        )
        for number, cut in sorted(divert.cut.items())
    ]
    header = ("PARTITION", "BACKLOG FROM", "BACKLOG READ TO", "BACKLOG END", "CUT", "GROUP AT")
    yield from (f"  {line}" for line in output.columns(header, rows))
    yield f"Nothing was skipped and nothing is left over; {proof['handled_twice']:,} records past the cut were read by both groups."
    if proof["lost"]:
        yield f"{proof['lost']:,} records had been deleted by retention before they were read."


def undone(divert: Divert) -> Iterator[str]:
    yield f"Undone: {divert.group} reads {divert.topic} alone again."
    if divert.way is not Way.FRESH and divert.moved_to:
        rows = [
            (number, divert.moved_from.get(number), offset, divert.before.get(number))
            for number, offset in sorted(divert.moved_to.items())
        ]
        header = ("PARTITION", "WAS AT", "GOES ON AT", "BEFORE THE DIVERT")
        yield from (f"  {line}" for line in output.columns(header, rows))


def _row(side: Side) -> tuple[object, ...]:
    lag = side.lag
    state = "drained" if side.drained and side.what == "backlog" else lag.state.value
    return (
        side.what,
        lag.group_id,
        side.topic,
        state,
        f"{side.unread:,}",
        times.show_seconds(lag.seconds) if side.unread else "0 s",
        rate(lag.rate_in),
        rate(lag.rate_out),
        times.show_seconds(lag.seconds_to_catch_up) if side.unread else None,
        times.show_seconds(lag.seconds_until_loss),
        lag.members,
    )
