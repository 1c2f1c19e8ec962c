"""How a divert stands: both sides with their lag, and what has gone wrong, as sentences.

A side's lag ends where the side ends: the backlog's at the cut, however long the topic has become since.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from headrace.backlog import copying, joining
from headrace.backlog.cutting import crossed_partitions
from headrace.backlog.divert import Divert, Places
from headrace.backlog.site import Site
from headrace.backlog.states import State, Way
from headrace.client.administration.lag import ONE_RECORD
from headrace.client.consumer import Consumer
from headrace.client.lag import GroupLag, LagMeter
from headrace.client.record import TopicPartition


@dataclass(frozen=True, slots=True)
class Side:
    """A group over a topic, up to where its part of it ends."""

    what: str
    """new records, or backlog."""
    topic: str
    lag: GroupLag
    unread: int
    """Offsets that still hold something to read; what is left when only markers are is nothing."""

    @property
    def drained(self) -> bool:
        return self.unread == 0

    def as_json(self) -> dict[str, Any]:
        return {"side": self.what, "topic": self.topic, "unread": self.unread, **self.lag.as_json()}


@dataclass(frozen=True, slots=True)
class Status:
    divert: Divert
    sides: tuple[Side, ...]
    notes: tuple[str, ...]
    next_step: str

    def as_json(self) -> dict[str, Any]:
        return {
            **self.divert.as_document(),
            "sides": [each.as_json() for each in self.sides],
            "notes": list(self.notes),
            "next": self.next_step,
        }


class Meter:
    """Measures diverts again and again; a window of looks makes rates, states and forecasts."""

    def __init__(self, site: Site, window: float) -> None:
        self._site = site.for_a_look()
        self._window = window
        self._consumer: Consumer[bytes, bytes] = Consumer(
            {**site.connection, "group.id": "headrace-lag", "enable.auto.commit": False, **ONE_RECORD}
        )
        self._meters: dict[tuple[str, str], LagMeter] = {}

    def look(self, divert: Divert) -> Status:
        sides = () if divert.state.over else self._sides(divert)
        return Status(divert, sides, tuple(_notes(self._site, divert)), next_step(divert, sides))

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sides(self, divert: Divert) -> tuple[Side, ...]:
        if divert.state is State.PREPARING:
            return (self._side("all records", divert.group, divert.topic, None),)
        if divert.way is Way.FRESH:
            return (
                self._side("new records", divert.group, divert.fresh, None),
                self._side("backlog", divert.group, divert.topic, None),
            )
        ends = joining.ends_of_backlog(self._site, divert)
        return (
            self._side("new records", divert.group, divert.topic, None),
            self._side("backlog", divert.backlog_group, divert.backlog_topic, ends),
        )

    def _side(self, what: str, group: str, topic: str, ends: Places | None) -> Side:
        # One for each side: a meter knows one window of looks for a group, and a group may be on both sides.
        meter = self._meters.setdefault(
            (group, topic), LagMeter(self._site.session, self._consumer.librdkafka, self._window)
        )
        bounds = None if ends is None else {TopicPartition(topic, each): end for each, end in ends.items()}
        lag = meter.measure(group, self._site.admin.partitions_of(topic), ends=bounds).of_topic(topic)
        unread = self._site.unread(group, topic, self._site.ends(topic) if ends is None else ends)
        return Side(what, topic, lag, sum(unread.values()))


def next_step(divert: Divert, sides: tuple[Side, ...]) -> str:
    """What the user does next, in one sentence."""
    again = f"headrace backlog {{}} {divert.group} --topic {divert.topic}"
    if divert.state in (State.PREPARING, State.MOVING, State.COPYING):
        return f"Let it go on: {again.format('divert')}"
    if divert.state is State.JOINING:
        return f"Let it go on: {again.format('join')}"
    if divert.state is State.UNDOING:
        return f"Let it go on: {again.format('undo')}"
    if divert.state.over:
        return f"Nothing: it was {divert.state}."
    backlog = sides[-1]
    if not backlog.drained:
        if backlog.lag.members == 0:
            own = f"instances of your consumer with group.id={backlog.lag.group_id} on topic {backlog.topic}"
            if divert.way is Way.OFFSETS:
                return (
                    "Nobody drains the backlog: run headrace.backlog.drain, which stops at the cut, or start "
                    f"{own}, which read on behind it and handle those records twice."
                )
            return f"Nobody drains the backlog: start {own}."
        return "Wait until the backlog is drained."
    if divert.way is Way.FRESH:
        return f"The backlog is drained: stop the readers of {divert.topic}, then {again.format('join')}"
    return f"The backlog is drained: stop {divert.backlog_group}, then {again.format('join')}"


def _notes(site: Site, divert: Divert) -> list[str]:
    """What needs somebody's attention."""
    if divert.way is Way.FRESH:
        return _notes_on_routes(site, divert)
    if divert.state is not State.DIVERTED:
        if divert.state is State.COPYING:
            so_far = copying.copied(site, divert).next
            left = sum(max(0, divert.cut[number] - place) for number, place in so_far.items())
            return [f"The copy lacks {left:,} of {divert.records:,} records."]
        return []
    notes = []
    past = joining.past_the_cut(site, divert)
    if past:
        notes.append(
            f"{divert.backlog_group} has read {past:,} records past the cut: {divert.group} handles those too. "
            "Stop its instances whose partitions are drained."
        )
    crossed = crossed_partitions(site, divert)
    if crossed:
        numbers = ", ".join(map(str, sorted(crossed)))
        notes.append(
            f"{divert.group} stands before the cut in partitions {numbers}: somebody has moved it back, or a consumer that was not stopped "
            "commits there; what lies between is handled twice."
        )
    return notes


def _notes_on_routes(site: Site, divert: Divert) -> list[str]:
    if divert.state is State.DIVERTED:
        ends = site.ends(divert.topic)
        since = sum(ends[number] - divert.cut.get(number, 0) for number in ends)
        if since:
            return [
                f"{since:,} records came to {divert.topic} since the divert. If there are more at the next look, some producer does not "
                "follow routes: it is not of headrace.client, or was made without routes=True."
            ]
    if divert.state is State.JOINED and site.exists(divert.fresh):
        late = site.unread(divert.group, divert.fresh, site.ends(divert.fresh))
        if late:
            return [
                f"{sum(late.values()):,} records came to {divert.fresh} after the join, from a producer that was cut off from the cluster: "
                "have the group read them."
            ]
    return []
