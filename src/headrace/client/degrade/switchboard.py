"""The state of each rule of one group here, and why. Pure: it is told commands, lags and the time, and says what acts now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headrace.client.degrade.conditions import LagBounds
from headrace.client.degrade.control import Board, Command, Report, RuleReport
from headrace.client.degrade.replayed import topic_of
from headrace.client.degrade.rules import Rule, SwitchOff
from headrace.client.degrade.states import Order, RuleState, Signal, after
from headrace.client.lag import GroupLag
from headrace.client.lag_states import worst

LagOf = Callable[[str], GroupLag | None]


@dataclass(frozen=True, slots=True)
class Active:
    """What acts at one moment; replaced as a whole, so any thread may read it."""

    rules: tuple[Rule, ...] = ()
    """Those that look at records, in their order."""
    group_is_off: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where one rule stands."""

    state: RuleState
    since: float
    why: str | None = None
    engagements: int = 0


class Switchboard:
    def __init__(self, group: str, rules: Iterable[Rule], now: float) -> None:
        self.group = group
        self.rules = tuple(rules)
        self.places = {rule.name: Place(RuleState.OFF, now) for rule in self.rules}

    def watched_groups(self) -> list[str]:
        found = {rule.when.group or self.group for rule in self.rules if isinstance(rule.when, LagBounds)}
        return sorted(found)

    def resume(self, reports: Iterable[Report]) -> None:
        """Begin where the group's other instances are, so that one that starts between the bounds does as they do."""
        engaged = {
            each.name: each for report in reports for each in report.rules if each.state == RuleState.ENGAGED
        }
        for name, found in engaged.items():
            if name in self.places:
                self.places[name] = Place(RuleState.ENGAGED, found.since, found.why)

    def step(self, board: Board, lag_of: LagOf, now: float) -> bool:
        """Move every rule on; whether any of them changed."""
        changed = False
        for rule in self.rules:
            place = self.places[rule.name]
            command = board.commands.get((self.group, rule.name))
            order = Order.AUTO if command is None else command.at_time(now)
            signal, why = _signal(rule, self.group, lag_of)
            state = after(place.state, order, signal)
            if order is not Order.AUTO:
                why = _told(command)
            if state is not place.state or (order is not Order.AUTO and why != place.why):
                engagements = place.engagements + (state.acts and not place.state.acts)
                self.places[rule.name] = Place(state, now, why, engagements)
                changed = True
            elif state is RuleState.ENGAGED and why != place.why:
                self.places[rule.name] = replace(place, why=why)
        return changed

    def active(self) -> Active:
        acting = [rule for rule in self.rules if self.places[rule.name].state.acts]
        off = any(isinstance(rule, SwitchOff) and rule.handler is None for rule in acting)
        on_records = (rule for rule in acting if not (isinstance(rule, SwitchOff) and rule.handler is None))
        return Active(tuple(on_records), off)

    def reports(self, dropped: Callable[[str], int]) -> tuple[RuleReport, ...]:
        return tuple(
            RuleReport(
                rule.name,
                type(rule).__name__,
                rule.handler,
                "lag" if isinstance(rule.when, LagBounds) else rule.when,
                place.state.value,
                place.since,
                place.why,
                dropped(rule.name),
            )
            for rule, place in ((rule, self.places[rule.name]) for rule in self.rules)
        )


def _signal(rule: Rule, group: str, lag_of: LagOf) -> tuple[Signal, str | None]:
    if isinstance(rule.when, LagBounds):
        lag = lag_of(rule.when.group or group)
        return rule.when.signal(None if lag is None else _without_replays(lag))
    return (Signal.ENGAGE, "always") if rule.when == "always" else (Signal.RELEASE, None)


def _without_replays(lag: GroupLag) -> GroupLag:
    """What waits to be caught up with is no new load: it would engage the rule that it is left from."""
    kept = tuple(each for each in lag.partitions if each.partition.topic != topic_of(lag.group_id))
    if len(kept) == len(lag.partitions):
        return lag
    return replace(lag, partitions=kept, state=worst(each.state for each in kept))


def _told(command: Command | None) -> str | None:
    if command is None:
        return None
    when = datetime.fromtimestamp(command.at, UTC).isoformat(timespec="seconds")
    return f"by {command.by} at {when}" + (f": {command.why}" if command.why else "")
