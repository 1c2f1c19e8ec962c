"""Which partition a record goes to: by its key and the partition count, or spread when it has no key.

``murmur2`` places keys where Kafka's Java client does. ``hash_slots`` and ``consistent_hash`` move few keys
when partitions are added. All of them depend on nothing but the key and the count, so every producer agrees.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from confluent_kafka import murmur2 as murmur2_modulo

from headrace.client.errors import ConfigError

_HASH_SPACE = 2**31 - 1


class Partitioner(Protocol):
    """Called by one thread at a time. ``size`` is the number of bytes of key and value."""

    def partition(self, topic: str, key: bytes | None, size: int, partitions: int) -> int: ...


class RoundRobin:
    """Each record to the next partition, whatever its key; evenly loaded, no order per key."""

    def __init__(self) -> None:
        self._next: dict[str, itertools.count[int]] = {}

    def partition(self, topic: str, key: bytes | None, size: int, partitions: int) -> int:
        return next(self._next.setdefault(topic, itertools.count())) % partitions


class Sticky:
    """Fill a batch for one partition, then choose another at random, whatever the key."""

    def __init__(self, batch_size: int = 16_384) -> None:
        self._batch_size = batch_size
        self._current: dict[str, tuple[int, int]] = {}

    def partition(self, topic: str, key: bytes | None, size: int, partitions: int) -> int:
        current, filled = self._current.get(topic, (-1, self._batch_size))
        if filled >= self._batch_size or current >= partitions:
            current, filled = _another(current, partitions), 0
        self._current[topic] = current, filled + size
        return current


class _Keyed:
    """Keys go by ``place``; records without a key go by ``without_key``."""

    def __init__(self, without_key: Partitioner | None = None) -> None:
        self._without_key = without_key or Sticky()

    def partition(self, topic: str, key: bytes | None, size: int, partitions: int) -> int:
        if key is None:
            return self._without_key.partition(topic, key, size, partitions)
        return self.place(key, partitions)

    def place(self, key: bytes, partitions: int) -> int:
        raise NotImplementedError


class Murmur2(_Keyed):
    """Hash of the key modulo the count, as Kafka's Java client. Adding partitions moves most keys."""

    def place(self, key: bytes, partitions: int) -> int:
        return murmur2_modulo(key, partitions)


class HashSlots(_Keyed):
    """Keys hash to a fixed number of slots, and slots belong to partitions.

    A new partition takes an equal share of slots from each of the others, so the load stays even and the
    fewest possible keys move.
    """

    def __init__(self, slots: int = 16_384, without_key: Partitioner | None = None) -> None:
        super().__init__(without_key)
        self._slots = slots

    def place(self, key: bytes, partitions: int) -> int:
        if partitions > self._slots:
            raise ConfigError(
                f"{self._slots} slots cannot be shared by {partitions} partitions: use more slots"
            )
        return _slot_table(self._slots, partitions)[murmur2_modulo(key, self._slots)]


class ConsistentHash(_Keyed):
    """Keys and several points per partition lie on a ring; a key belongs to the next point.

    About as few keys move as with hash slots; the load is a little less even, the more so the fewer points.
    """

    def __init__(self, points: int = 160, without_key: Partitioner | None = None) -> None:
        super().__init__(without_key)
        self._points = points

    def place(self, key: bytes, partitions: int) -> int:
        positions, owners = _ring(self._points, partitions)
        at = bisect.bisect_right(positions, murmur2_modulo(key, _HASH_SPACE))
        return owners[at % len(owners)]


PARTITIONERS: dict[str, type[Murmur2 | HashSlots | ConsistentHash | RoundRobin | Sticky]] = {
    "murmur2": Murmur2,
    "hash_slots": HashSlots,
    "consistent_hash": ConsistentHash,
    "round_robin": RoundRobin,
    "sticky": Sticky,
}
KEYED = tuple(name for name, kind in PARTITIONERS.items() if issubclass(kind, _Keyed))


_JAVA_NAMES = {"RoundRobinPartitioner": "round_robin", "UniformStickyPartitioner": "sticky"}


def named(name: str) -> Partitioner:
    """The partitioner of that name; the class names of Kafka's Java client are understood too."""
    kind = PARTITIONERS.get(_JAVA_NAMES.get(name.rpartition(".")[2], name))
    if kind is None:
        raise ConfigError(f'there is no partitioner "{name}": choose one of {", ".join(PARTITIONERS)}')
    return kind()


@dataclass(frozen=True, slots=True)
class Simulation:
    """What adding partitions does to a set of keys."""

    keys: int
    before: int
    after: int
    moved: int
    largest_before: int
    largest_after: int

    @property
    def moved_share(self) -> float:
        return self.moved / self.keys if self.keys else 0.0

    @property
    def fewest_share(self) -> float:
        """The share that any partitioner must move to give the new partitions an equal part."""
        return abs(self.after - self.before) / max(self.after, self.before)

    @property
    def imbalance_after(self) -> float:
        """Keys of the fullest partition over the average: 1.0 is perfectly even."""
        return self.largest_after * self.after / self.keys if self.keys else 0.0


def simulate(partitioner: Partitioner, keys: Iterable[bytes], before: int, after: int) -> Simulation:
    """Place distinct keys on ``before`` and on ``after`` partitions and count what moves."""
    if before < 1 or after < 1:
        raise ConfigError("a topic has at least one partition")
    was: Counter[int] = Counter()
    will: Counter[int] = Counter()
    moved = 0
    for key in set(keys):
        old = partitioner.partition("", key, len(key), before)
        new = partitioner.partition("", key, len(key), after)
        was[old] += 1
        will[new] += 1
        moved += old != new
    count = was.total()
    return Simulation(
        count, before, after, moved, max(was.values(), default=0), max(will.values(), default=0)
    )


def _another(current: int, partitions: int) -> int:
    if partitions == 1:
        return 0
    if not 0 <= current < partitions:
        return random.randrange(partitions)
    chosen = random.randrange(partitions - 1)
    return chosen + (chosen >= current)


@lru_cache(maxsize=64)
def _slot_table(slots: int, partitions: int) -> list[int]:
    """Owner of each slot, as if partitions had been added one by one: depends on the count alone."""
    owned = [list(range(slots))]
    fullest = [(-slots, 0)]
    for newcomer in range(1, partitions):
        taken = []
        for _ in range(slots // (newcomer + 1)):
            _, giver = fullest[0]
            taken.append(owned[giver].pop())
            heapq.heapreplace(fullest, (-len(owned[giver]), giver))
        owned.append(taken)
        heapq.heappush(fullest, (-len(taken), newcomer))
    table = [0] * slots
    for partition, mine in enumerate(owned):
        for slot in mine:
            table[slot] = partition
    return table


@lru_cache(maxsize=64)
def _ring(points: int, partitions: int) -> tuple[list[int], list[int]]:
    ring = sorted(
        (murmur2_modulo(b"%d/%d" % (partition, point), _HASH_SPACE), partition)
        for partition in range(partitions)
        for point in range(points)
    )
    return [position for position, _ in ring], [owner for _, owner in ring]
