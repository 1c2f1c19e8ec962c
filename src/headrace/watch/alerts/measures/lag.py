"""Rules about groups: their lag's state, its age, its size, and how long retention still keeps what is unread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.client.durations import show_seconds
from headrace.client.lag import GroupLag, PartitionLag
from headrace.client.lag_states import LagState, worst
from headrace.watch.alerts.conditions import LagForecast, LagRecords, LagSeconds, LagStates, OfGroups
from headrace.watch.alerts.sight import Sight
from headrace.watch.alerts.states import Finding, Seen

OWN_GROUPS = "__headrace"


def findings(condition: OfGroups, sight: Sight) -> list[Finding]:
    """One for each group that the rule is about."""
    judge = _JUDGES[type(condition)]
    found = [
        Finding((("group", group),), Seen.MISSING, f"the lag of group {group} cannot be measured: {why}")
        for group, why in sight.lags.unmeasured.items()
        if condition.groups.matches(group)
    ]
    for lag in sight.lags.measured:
        if not condition.groups.matches(lag.group_id):
            continue
        kept = tuple(each for each in lag.partitions if condition.topics.matches(each.partition.topic))
        if lag.partitions and not kept:
            continue
        if kept != lag.partitions:
            lag = replace(lag, partitions=kept, state=worst(each.state for each in kept))
        finding = judge(condition, lag)
        hidden = any(condition.topics.matches(each.topic) for each in lag.unreadable)
        if finding.seen is Seen.CLEAR and hidden:
            finding = replace(finding, seen=Seen.MISSING)
        found.append(finding)
    return found


def _states(condition: OfGroups, lag: GroupLag) -> Finding:
    assert isinstance(condition, LagStates)
    states = {each.state for each in lag.partitions} or {lag.state}
    wanted = [state for state in states if state in condition.states]
    if not wanted:
        unknown = LagState.UNKNOWN in states
        return _finding(lag, Seen.MISSING if unknown else Seen.CLEAR, f"is {lag.state.value}", lag.partitions)
    state = worst(wanted)
    return _finding(
        lag, Seen.ACTIVE, f"is {state.value}", [each for each in lag.partitions if each.state == state]
    )


def _seconds(condition: OfGroups, lag: GroupLag) -> Finding:
    assert isinstance(condition, LagSeconds)
    behind = lag.seconds
    if behind is None:
        return _finding(lag, Seen.MISSING, "is behind by a time that cannot be read", lag.partitions)
    if behind > condition.above:
        late = [each for each in lag.partitions if (each.seconds or 0) > condition.above]
        return _finding(lag, Seen.ACTIVE, f"is {show_seconds(behind)} behind", late, behind)
    unknown = any(each.seconds is None for each in lag.partitions)
    return _finding(
        lag,
        Seen.MISSING if unknown else Seen.CLEAR,
        f"is {show_seconds(behind)} behind",
        lag.partitions,
        behind,
    )


def _records(condition: OfGroups, lag: GroupLag) -> Finding:
    assert isinstance(condition, LagRecords)
    seen = Seen.ACTIVE if lag.records > condition.above else Seen.CLEAR
    if not lag.partitions:
        seen = Seen.MISSING
    return _finding(lag, seen, "is behind", lag.partitions, lag.records)


def _forecast(condition: OfGroups, lag: GroupLag) -> Finding:
    assert isinstance(condition, LagForecast)
    left = lag.seconds_until_loss
    if left is not None and left < condition.within:
        near = [
            each
            for each in lag.partitions
            if each.seconds_until_loss is not None and each.seconds_until_loss < condition.within
        ]
        when = "now" if left <= 0 else f"in {show_seconds(left)}"
        return _finding(lag, Seen.ACTIVE, f"may lose unread records to retention {when}", near, left)
    # Until a window is full nobody knows where things lead.
    unknown = (
        any(each.state is LagState.UNKNOWN and each.records for each in lag.partitions) or not lag.partitions
    )
    return _finding(
        lag, Seen.MISSING if unknown else Seen.CLEAR, "loses nothing to retention", lag.partitions, left
    )


_JUDGES: dict[type[OfGroups], Callable[[OfGroups, GroupLag], Finding]] = {
    LagStates: _states,
    LagSeconds: _seconds,
    LagRecords: _records,
    LagForecast: _forecast,
}


def _finding(
    lag: GroupLag, seen: Seen, what: str, partitions: Iterable[PartitionLag], value: float | None = None
) -> Finding:
    concerned = sorted(partitions, key=lambda each: -each.records)
    unread = f"{lag.records:,} {'record' if lag.records == 1 else 'records'} unread"
    most = (
        f", most in {concerned[0].partition}"
        if concerned and concerned[0].records and len(lag.partitions) > 1
        else ""
    )
    only = f" in {concerned[0].partition}" if concerned and len(lag.partitions) == 1 else ""
    return Finding(
        (("group", lag.group_id),),
        seen,
        f"group {lag.group_id} {what}: {unread}{most or only}",
        float(lag.records) if value is None else round(value, 3),
    )
