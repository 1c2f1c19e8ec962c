"""Whether a group's lag is acceptable, as a script or an alert asks; each problem is a phrase for people."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.client.durations import show_seconds
from headrace.client.lag import GroupLag
from headrace.client.lag_states import LagState


@dataclass(frozen=True, slots=True)
class Bounds:
    """None is without a bound."""

    states: frozenset[LagState] = frozenset()
    records: int | None = None
    seconds: float | None = None
    until_loss: float | None = None


def problems(lag: GroupLag, bounds: Bounds) -> list[str]:
    found = []
    if lag.state in bounds.states:
        found.append(f"is {lag.state.value}")
    if bounds.records is not None and lag.records > bounds.records:
        found.append(f"{lag.records:,} records unread, more than {bounds.records:,}")
    if bounds.seconds is not None and lag.seconds is not None and lag.seconds > bounds.seconds:
        found.append(f"{show_seconds(lag.seconds)} behind, more than {show_seconds(bounds.seconds)}")
    left = lag.seconds_until_loss
    if bounds.until_loss is not None and left is not None and left < bounds.until_loss:
        found.append(f"retention may delete unread records in {show_seconds(left)}")
    return found
