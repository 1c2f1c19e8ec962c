"""Where replicas should be when brokers come, go or are asked to hold more copies: a plan with as few moves as possible.

Pure: assignments in, assignments out. What must move, moves (a broker that is to be emptied, a missing replica, two replicas
in one rack although another is free); beyond that a replica moves only to even out the load. A broker that is down keeps
what it has and gets nothing new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.client.administration.names import Partition

Assignment = dict[Partition, list[int]]


@dataclass(frozen=True, slots=True)
class Place:
    """A broker as a place for replicas."""

    broker: int
    rack: str | None = None
    live: bool = True


class TooFewBrokers(Exception):
    """The replication factor asked for cannot be reached."""


def plan(
    current: Mapping[Partition, Collection[int]],
    places: Collection[Place],
    replication_factor: int | None = None,
    fixed: Mapping[Partition, Collection[int]] | None = None,
) -> Assignment:
    """The assignment to aim at, for every partition of `current`; `fixed` ones count as load and stay where they are."""
    planner = _Planner(places, fixed or {})
    for partition, replicas in sorted(current.items()):
        planner.keep(partition, list(replicas), replication_factor or len(replicas))
    planner.fill()
    planner.even_out()
    planner.even_out_leaders()
    return planner.assignment


class _Planner:
    def __init__(self, places: Collection[Place], fixed: Mapping[Partition, Collection[int]]) -> None:
        self._places = {place.broker: place for place in places}
        self._racks = len({place.rack for place in places if place.live})
        self._held: Counter[int] = Counter()
        self._held_of_topic: Counter[tuple[int, str]] = Counter()
        self._led: Counter[int] = Counter()
        self._on: dict[int, dict[str, dict[Partition, None]]] = {place.broker: {} for place in places}
        self._arrived: Counter[int] = Counter()
        """How many replicas each broker gets that it had not."""
        self._before: dict[Partition, frozenset[int]] = {}
        self._kept: dict[Partition, list[int | None]] = {}
        self.assignment: Assignment = {}
        for (topic, _), replicas in fixed.items():
            for position, broker in enumerate(replicas):
                self._count(broker, topic, +1)
                self._led[broker] += position == 0

    # What must be.

    def keep(self, partition: Partition, replicas: list[int], wanted: int) -> None:
        """Keep what may stay, and note the places that are empty."""
        kept: list[int | None] = [broker if broker in self._places else None for broker in replicas]
        while len(kept) > wanted:
            kept.remove(None if None in kept else self._worst([each for each in kept if each is not None]))
        kept += [None] * (wanted - len(kept))
        self._before[partition] = frozenset(replicas)
        self._kept[partition] = kept
        for broker in kept:
            if broker is not None:
                self._count(broker, partition[0], +1)

    def fill(self) -> None:
        """Give every empty place to the broker that has least, and part replicas that share a rack."""
        for partition, kept in self._kept.items():
            taken = [broker for broker in kept if broker is not None]
            settled = []
            for broker in kept:
                if broker is None:
                    broker = self._best(partition[0], taken)
                    taken.append(broker)
                    self._count(broker, partition[0], +1)
                settled.append(broker)
            self._spread_over_racks(partition[0], settled)
            self.assignment[partition] = settled
            for broker in settled:
                self._arrived[broker] += broker not in self._before[partition]
                self._on[broker].setdefault(partition[0], {})[partition] = None
            self._led[settled[0]] += 1

    def _spread_over_racks(self, topic: str, replicas: list[int]) -> None:
        """A replica whose rack another one shares moves to a rack that has none."""
        for position in range(len(replicas) - 1, -1, -1):
            racks = Counter(self._places[broker].rack for broker in replicas)
            if len(racks) >= min(self._racks, len(replicas)):
                return
            if racks[self._places[replicas[position]].rack] > 1:
                better = self._best(topic, replicas)
                if self._places[better].rack not in racks:
                    self._count(replicas[position], topic, -1)
                    self._count(better, topic, +1)
                    replicas[position] = better

    def _best(self, topic: str, taken: Collection[int]) -> int:
        racks = Counter(self._places[broker].rack for broker in taken)
        free = [place for place in self._places.values() if place.live and place.broker not in taken]
        if not free:
            live = sum(place.live for place in self._places.values())
            raise TooFewBrokers(
                f"A partition of '{topic}' needs {len(taken) + 1} brokers or more, and only {live} live ones may hold it."
            )
        return min(
            free,
            key=lambda place: (
                racks[place.rack],
                self._held[place.broker],
                self._held_of_topic[place.broker, topic],
                place.broker,
            ),
        ).broker

    def _worst(self, taken: list[int]) -> int:
        """Which replica to drop: first one on a dead broker, then one that shares a rack, then one on the fullest broker; the leader last."""
        racks = Counter(self._places[broker].rack for broker in taken)
        return max(
            taken,
            key=lambda broker: (
                not self._places[broker].live,
                racks[self._places[broker].rack],
                broker != taken[0],
                self._held[broker],
                broker,
            ),
        )

    # What evens out.

    def even_out(self) -> None:
        """Move replicas from the fullest broker to the emptiest, while that brings the two closer."""
        live = [place.broker for place in self._places.values() if place.live]
        moved = True
        while moved:
            moved = False
            for source in sorted(live, key=lambda broker: (-self._held[broker], broker)):
                for target in sorted(live, key=lambda broker: (self._held[broker], broker)):
                    if self._held[source] - self._held[target] < 2:
                        break
                    if self._move_one(source, target):
                        moved = True
                        break
                if moved:
                    break

    def _move_one(self, source: int, target: int) -> bool:
        topics = self._on[source]
        by_gain = sorted(
            (topic for topic in topics if topics[topic]),
            key=lambda topic: self._held_of_topic[target, topic] - self._held_of_topic[source, topic],
        )
        for topic in by_gain:
            for effort in (0, 1, 2) if self._arrived[source] else (1, 2):
                for partition in topics[topic]:
                    fits = self._effort(partition, source) == effort
                    if fits and self._may_replace(partition, source, target):
                        self._replace(partition, source, target)
                        return True
        return False

    def _effort(self, partition: Partition, source: int) -> int:
        """What would have to be copied anyhow goes first, followers next: those change no preferred leader."""
        if source not in self._before[partition]:
            return 0
        return 2 if self.assignment[partition][0] == source else 1

    def _may_replace(self, partition: Partition, source: int, target: int) -> bool:
        replicas = self.assignment[partition]
        if target in replicas:
            return False
        before = {self._places[broker].rack for broker in replicas}
        after = {self._places[broker].rack for broker in replicas if broker != source}
        return len(after | {self._places[target].rack}) >= len(before)

    def _replace(self, partition: Partition, source: int, target: int) -> None:
        topic = partition[0]
        replicas = self.assignment[partition]
        position = replicas.index(source)
        replicas[position] = target
        del self._on[source][topic][partition]
        self._on[target].setdefault(topic, {})[partition] = None
        self._count(source, topic, -1)
        self._count(target, topic, +1)
        self._arrived[source] -= source not in self._before[partition]
        self._arrived[target] += target not in self._before[partition]
        if position == 0:
            self._led[source] -= 1
            self._led[target] += 1

    def even_out_leaders(self) -> None:
        """Let another replica come first, which moves no data, while that brings two brokers nearer."""
        moved = True
        while moved:
            moved = False
            for replicas in self.assignment.values():
                if not all(self._places[broker].live for broker in replicas):
                    continue
                least = min(replicas, key=lambda broker: self._led[broker])
                if self._led[replicas[0]] - self._led[least] >= 2:
                    self._led[replicas[0]] -= 1
                    self._led[least] += 1
                    position = replicas.index(least)
                    replicas[0], replicas[position] = replicas[position], replicas[0]
                    moved = True

    def _count(self, broker: int, topic: str, change: int) -> None:
        self._held[broker] += change
        self._held_of_topic[broker, topic] += change
