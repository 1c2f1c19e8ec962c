"""Consumer groups that this broker coordinates, by kafka_exporter's names, and their lag in seconds. docs/lag.md defines lag.

Without `partitions=all` the series of a topic's partitions are added up (the lag in seconds is the largest), under the same names
without the label `partition`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.server.api.engines import Engines
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.consumer_protocol import decode_assignment
from headrace.server.groups.state import Group, GroupState
from headrace.server.metrics.ends import Ends, Place
from headrace.server.metrics.text import GAUGE, Family, labels, several
from headrace.unread import Unread, age
from headrace.wire.codec import WireError

Row = tuple[str, str, int, Unread]
"""(group, topic, partition, how far it is)"""


@dataclass(slots=True)
class GroupSurvey:
    """What one look at the groups finds; the look is taken a little at a time."""

    members: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def starts(self) -> set[Place]:
        """Where the groups that are behind go on reading."""
        return {(topic, index, unread.start) for _, topic, index, unread in self.rows if unread.records}


class GroupFamilies:
    def __init__(self, engines: Engines, ends: Ends) -> None:
        self._engines = engines
        self._ends = ends
        self._decoded: dict[bytes, tuple[tuple[str, int], ...]] = {}
        """Assignments of classic members, decoded once."""

    def look(self, survey: GroupSurvey) -> Iterator[str]:
        image = self._engines.cluster.image
        seen: set[bytes] = set()
        for state in self._engines.groups.states():
            names = {**dict.fromkeys(state.groups), **dict.fromkeys(state.offsets.groups())}
            for name in names:
                group = state.groups.get(name)
                survey.members[name] = len(group.members) if group is not None else 0
                for count, (topic, index, committed) in enumerate(self._partitions(state, group, name, seen)):
                    if not count % 16:
                        yield ""
                    if image.partition(topic, index) is None:
                        continue  # Its topic was deleted a moment ago.
                    bounds = self._ends.bounds(topic, index)
                    if bounds is not None:
                        survey.rows.append((name, topic, index, Unread(committed, *bounds)))
                yield ""
            for share_group in state.share_groups.values():
                survey.members[share_group.group_id] = len(share_group.members)
        self._decoded = {data: found for data, found in self._decoded.items() if data in seen}

    def _partitions(
        self, state: GroupState, group: Group | None, name: str, seen: set[bytes]
    ) -> Iterator[tuple[str, int, int | None]]:
        """(topic, partition, committed offset) of all that the group has committed or reads."""
        offsets = state.offsets.of_group(name)
        for topic, partitions in list(offsets.items()):
            for index, committed in list(partitions.items()):
                yield topic, index, committed.offset
        told: set[tuple[str, int]] = set()
        for place in self._assigned(group, seen):
            topic, index = place
            # Members may share a partition: it is in a page once all the same.
            if index not in offsets.get(topic, ()) and place not in told:
                told.add(place)
                yield topic, index, None

    def _assigned(self, group: Group | None, seen: set[bytes]) -> Iterator[tuple[str, int]]:
        if isinstance(group, ConsumerGroup):
            by_id = self._engines.cluster.image.topics_by_id
            for member in list(group.members.values()):
                for topic_id, indexes in member.assigned.items():
                    topic = by_id.get(topic_id)
                    if topic is not None:
                        yield from ((topic.name, index) for index in indexes)
        elif (
            isinstance(group, ClassicGroup)
            and group.uses_consumer_protocol
            and group.state is ClassicState.STABLE
        ):
            for each in list(group.members.values()):
                seen.add(each.assignment)
                known = self._decoded.get(each.assignment)
                if known is None:
                    known = self._decoded[each.assignment] = _decode(each.assignment)
                yield from known

    def families(self, survey: GroupSurvey, every_partition: bool) -> Iterator[Family]:
        yield several(
            "kafka_consumergroup_members",
            GAUGE,
            "Members of a group.",
            ((labels(consumergroup=name), count) for name, count in survey.members.items()),
        )
        rows: list[tuple[str, int, int, float | None, int]] = []
        sums: dict[str, tuple[int, int, float | None, int]] = {}

        def measure() -> Iterator[str]:
            now = self._engines.clock.now_ms() / 1000
            prefixes: dict[tuple[str, str], str] = {}
            for number, (name, topic, index, unread) in enumerate(survey.rows):
                if not number % 16:
                    yield ""
                prefix = prefixes.get((name, topic))
                if prefix is None:
                    prefix = prefixes[name, topic] = labels(consumergroup=name, topic=topic)[:-1]
                seconds = self._seconds(topic, index, unread, now)
                rows.append(
                    (
                        f'{prefix},partition="{index}"}}',
                        unread.committed or 0,
                        unread.records,
                        seconds,
                        unread.lost,
                    )
                )
                label = prefix + "}"
                committed, records, longest, lost = sums.get(label, (0, 0, None, 0))
                if seconds is not None:
                    longest = seconds if longest is None else max(longest, seconds)
                sums[label] = (
                    committed + (unread.committed or 0),
                    records + unread.records,
                    longest,
                    lost + unread.lost,
                )

        yield Family("", GAUGE, "", measure())
        shown = rows if every_partition else [(label, *each) for label, each in sums.items()]
        added = "" if every_partition else " Over the partitions of a topic."
        yield several(
            "kafka_consumergroup_current_offset",
            GAUGE,
            f"Committed offset.{added}",
            ((label, offset) for label, offset, _, _, _ in shown),
        )
        yield several(
            "kafka_consumergroup_lag",
            GAUGE,
            f"Records that are unread.{added}",
            ((label, records) for label, _, records, _, _ in shown),
        )
        yield several(
            "kafka_consumergroup_lag_seconds",
            GAUGE,
            f"Age of the next record to read; none when that is not known. (docs/lag.md){added}",
            ((label, round(age_, 3)) for label, _, _, age_, _ in shown if age_ is not None),
        )
        yield several(
            "kafka_consumergroup_lag_sum",
            GAUGE,
            "Records that are unread, over the partitions of a topic.",
            ((label, records) for label, (_, records, _, _) in sums.items()),
        )
        yield several(
            "kafka_consumergroup_current_offset_sum",
            GAUGE,
            "Committed offsets, over the partitions of a topic.",
            ((label, offset) for label, (offset, _, _, _) in sums.items()),
        )
        yield several(
            "headrace_consumergroup_lost_records",
            GAUGE,
            "Records deleted before the group read them, by its present offsets.",
            ((label, lost) for label, (_, _, _, lost) in sums.items()),
        )

    def _seconds(self, topic: str, index: int, unread: Unread, now: float) -> float | None:
        if not unread.records:
            return 0.0
        written = self._ends.written(topic, index, unread.start)
        return None if written is None else age(now, written)


def _decode(assignment: bytes) -> tuple[tuple[str, int], ...]:
    try:
        decoded = decode_assignment(assignment)
    except WireError:
        return ()  # A client may put anything there.
    named = ((each.topic, index) for each in decoded.assigned_partitions for index in each.partitions)
    return tuple(dict.fromkeys(named))
