"""The assignor of share groups: partitions are shared, so it spreads members over them.

Every partition that somebody subscribes to has a member, and every member a partition if there is one for it. With fewer members
than partitions each partition has one member; otherwise each member has one partition. What members had they keep, as far as
loads that differ by at most one allow.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import NamedTuple

from headrace.server.groups.assignors.spec import Partitions

Place = tuple[uuid.UUID, int]


class Subscriber(NamedTuple):
    topics: frozenset[uuid.UUID]
    """The existing topics it is subscribed to."""
    had: Partitions


def assign_simple(
    members: Mapping[str, Subscriber], partitions: Mapping[uuid.UUID, Collection[int]]
) -> dict[str, Partitions]:
    spread = _Spread(members, partitions)
    spread.keep()
    spread.fill_partitions()
    spread.fill_members()
    spread.even_out()
    return spread.result()


class _Spread:
    def __init__(
        self, members: Mapping[str, Subscriber], partitions: Mapping[uuid.UUID, Collection[int]]
    ) -> None:
        self._members = dict(sorted(members.items()))
        self._by_topic = {
            topic: [name for name, member in self._members.items() if topic in member.topics]
            for topic in sorted(partitions)
        }
        self._holders: dict[Place, list[str]] = {
            (topic, index): []
            for topic in sorted(partitions)
            if self._by_topic[topic]
            for index in sorted(partitions[topic])
        }
        self._held: dict[str, list[Place]] = {name: [] for name in self._members}
        places, count = len(self._holders), max(len(members), 1)
        self._most_held = max(-(-places // count), 1)
        self._most_holders = max(-(-count // max(places, 1)), 1)

    def _give(self, name: str, place: Place) -> None:
        self._held[name].append(place)
        self._holders[place].append(name)

    def _take(self, name: str, place: Place) -> None:
        self._held[name].remove(place)
        self._holders[place].remove(name)

    def keep(self) -> None:
        for name, member in self._members.items():
            for topic in sorted(member.had):
                for index in sorted(member.had[topic]):
                    place = (topic, index)
                    if (
                        topic in member.topics
                        and place in self._holders
                        and len(self._held[name]) < self._most_held
                        and len(self._holders[place]) < self._most_holders
                    ):
                        self._give(name, place)

    def fill_partitions(self) -> None:
        """By the member with the least; if others look at one of its partitions too, it leaves that to them."""
        for place, holders in self._holders.items():
            if not holders:
                name = min(
                    self._by_topic[place[0]],
                    key=lambda name: (len(self._held[name]), -self._most_crowded(name)),
                )
                crowded = max(self._held[name], key=lambda each: len(self._holders[each]), default=None)
                self._give(name, place)
                if crowded is not None and len(self._holders[crowded]) > 1:
                    self._take(name, crowded)

    def _most_crowded(self, name: str) -> int:
        return max((len(self._holders[each]) for each in self._held[name]), default=0)

    def fill_members(self) -> None:
        """A member without a partition takes over from the one with the most, or joins the partition with the fewest."""
        for name, member in self._members.items():
            if self._held[name]:
                continue
            places = [place for place in self._holders if place[0] in member.topics]
            if not places:
                continue
            fullest = max(
                places, key=lambda place: max(len(self._held[each]) for each in self._holders[place])
            )
            rich = max(self._holders[fullest], key=lambda each: len(self._held[each]))
            if len(self._held[rich]) > 1:
                self._take(rich, fullest)
                self._give(name, fullest)
            else:
                self._give(name, min(places, key=lambda place: len(self._holders[place])))

    def even_out(self) -> None:
        """Move single members, or single partitions, until no load is larger than another by more than one."""
        for place, holders in self._holders.items():
            for name in list(holders):
                if len(holders) > 1 and len(self._held[name]) == 1:
                    topics = self._members[name].topics
                    other = min(
                        (each for each in self._holders if each[0] in topics),
                        key=lambda each: len(self._holders[each]),
                    )
                    if len(self._holders[other]) + 1 < len(holders):
                        self._take(name, place)
                        self._give(name, other)
        for place, holders in self._holders.items():
            if len(holders) == 1:
                poorest = min(self._by_topic[place[0]], key=lambda name: len(self._held[name]))
                if len(self._held[poorest]) + 1 < len(self._held[holders[0]]):
                    self._take(holders[0], place)
                    self._give(poorest, place)

    def result(self) -> dict[str, Partitions]:
        assignment: dict[str, Partitions] = {}
        for name, places in self._held.items():
            topics: dict[uuid.UUID, set[int]] = {}
            for topic, index in places:
                topics.setdefault(topic, set()).add(index)
            assignment[name] = {topic: frozenset(each) for topic, each in topics.items()}
        return assignment
