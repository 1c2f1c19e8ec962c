"""Measures what `advise` judges: a group's lag over a window, its topics, and samples of the records that it has not read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.backlog.advise import Facts
from headrace.backlog.samples import sample
from headrace.client.administration import groups, topics
from headrace.client.administration.errors import Refused
from headrace.client.administration.retention import Retention
from headrace.client.administration.session import Session
from headrace.client.lag import GroupLag, LagMeter
from headrace.client.lag_states import LagState, worst
from headrace.client.record import TopicPartition
from headrace.wire.errors import ErrorCode

_LOOKS = 10
"""In a window."""
_SAMPLES = 5
"""Partitions of which records are read."""


def measure(
    session: Session,
    meter: LagMeter,
    group: str,
    window: float,
    only: Iterable[str] = (),
    on_look: Callable[[GroupLag], object] = lambda _: None,
) -> Facts:
    """Looks at the group for a whole window, the meter's own. `only` are topics; by default all that the group reads."""
    wanted = frozenset(only)
    lag = meter.measure(group)
    on_look(lag)
    began = time.monotonic()  # a window is full when it spans its length
    while not _is_certain(lag) and time.monotonic() < began + window:
        time.sleep(min(window / _LOOKS, max(0.0, began + window - time.monotonic())))
        lag = meter.measure(group)
        on_look(lag)
    if wanted:
        lag = _only(lag, wanted)
    named = sorted({each.partition.topic for each in lag.partitions})
    found, _ = topics.find(session, named)
    limits = Retention().limits(session, named)
    return Facts(
        lag,
        window,
        {name: len(topic.partitions) for name, topic in found.items()},
        _idle_members(session, group),
        {name: (each.seconds, each.bytes) for name, each in limits.items()},
        {
            place: sample(session, (place.topic, place.partition), offset)
            for place, offset in _to_sample(lag).items()
        },
    )


def _is_certain(lag: GroupLag) -> bool:
    return lag.state == LagState.GONE or not lag.records


def _only(lag: GroupLag, wanted: frozenset[str]) -> GroupLag:
    kept = tuple(each for each in lag.partitions if each.partition.topic in wanted)
    return replace(lag, partitions=kept, state=worst(each.state for each in kept))


def _idle_members(session: Session, group: str) -> int:
    try:
        description = groups.describe(session, group)
    except Refused as refused:
        if refused.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED):
            return 0
        raise
    return sum(not member.assignment for member in description.members)


def _to_sample(lag: GroupLag) -> dict[TopicPartition, int]:
    """Partitions that stand still, then those with most unread; with the next offset to read."""
    behind = [each for each in lag.partitions if each.records]
    first = sorted(behind, key=lambda each: (each.state != LagState.STALLED, -each.records))
    return {each.partition: each.end - each.records for each in first[:_SAMPLES]}
