"""Consumer groups: those about to lose unread records, and those that no longer read."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.client.durations import show_seconds
from headrace.client.lag import GroupLag
from headrace.client.lag_states import LagState
from headrace.watch.doctor.findings import (
    Check,
    Finding,
    Needs,
    Severity,
    counted,
    error,
    listed,
    note,
    warning,
)
from headrace.watch.doctor.scene import Scene


def _loss(scene: Scene) -> Iterator[Finding]:
    for lag in scene.watching.lags():
        soon = sorted(
            (each for each in lag.partitions if _left(each.seconds_until_loss) < scene.bounds.loss_warning),
            key=lambda each: _left(each.seconds_until_loss),
        )
        if soon:
            left, place = _left(soon[0].seconds_until_loss), soon[0].partition
            say = error if left < scene.bounds.loss_error else warning
            when = "at any moment" if left == 0 else f"in {show_seconds(left)}"
            yield say(
                f"Retention may delete records of {place.topic}-{place.partition} {when} that group {lag.group_id} has not read "
                f"({lag.records:,} unread, {lag.state.value}).",
                f"'headrace configs alter topic {place.topic} --set retention.ms=…' keeps them for longer; 'headrace backlog advise "
                f"{lag.group_id}' says what would make it faster.",
                [f"{each.partition.topic}-{each.partition.partition}" for each in soon],
            )
        if lag.lost:
            lost = [each.partition for each in lag.partitions if each.lost]
            yield error(
                f"Group {lag.group_id} has lost {counted(lag.lost, 'record')} of {listed([f'{p.topic}-{p.partition}' for p in lost])}: they were "
                "deleted before it read them.",
                f"Nothing brings them back; start its consumers, or 'headrace groups reset-offsets {lag.group_id} --to-earliest' if it is "
                "to begin with what is left.",
                [f"{each.topic}-{each.partition}" for each in lost],
            )


def _left(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds


def _standing(scene: Scene) -> Iterator[Finding]:
    for lag in scene.watching.lags():
        if lag.state == LagState.STALLED:
            yield warning(
                f"Group {lag.group_id} has {_unread(lag)} and committed nothing for {show_seconds(scene.watching.window)} in "
                f"{listed(_in(lag, LagState.STALLED))}.",
                f"See what its consumers do ('headrace groups describe {lag.group_id} --members'); 'headrace backlog advise "
                f"{lag.group_id}' shows the record that each of them is at.",
                _in(lag, LagState.STALLED),
            )
        elif lag.state == LagState.GONE:
            yield warning(
                f"Group {lag.group_id} has {_unread(lag)} and no members.",
                f"Start its consumers, or 'headrace groups delete {lag.group_id}' if they will not come back.",
                _in(lag, LagState.GONE),
            )


def _unseen(scene: Scene) -> Iterator[Finding]:
    scene.watching.lags()
    if scene.watching.unseen:
        yield note(
            f"Not looked at: {counted(scene.watching.unseen, 'group')}, for want of time or because this user may not see them.",
            "Give a longer --window, or ask for single groups with 'headrace lag check GROUP'.",
        )


def _unread(lag: GroupLag) -> str:
    behind = "" if lag.seconds is None else f", the oldest {show_seconds(lag.seconds)} old"
    return f"{counted(lag.records, 'unread record')}{behind},"


def _in(lag: GroupLag, state: LagState) -> list[str]:
    return [f"{p.partition.topic}-{p.partition.partition}" for p in lag.partitions if p.state == state]


LOSS = Check(
    "groups-losing-records",
    Severity.ERROR,
    "groups whose unread records retention may delete soon, or has deleted",
    Needs.CLUSTER,
    _loss,
    watches=True,
)
STANDING = Check(
    "groups-standing",
    Severity.WARNING,
    "groups with unread records that commit nothing (stalled) or have no members (gone)",
    Needs.CLUSTER,
    _standing,
    watches=True,
)
UNSEEN = Check(
    "groups-unseen",
    Severity.NOTE,
    "groups that could not be looked at",
    Needs.CLUSTER,
    _unseen,
    watches=True,
)
