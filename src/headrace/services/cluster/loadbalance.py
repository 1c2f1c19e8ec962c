"""Which of several providers gets a call: by weighted chance, in turn, to the least busy, or by what is asked for.

A provider's weight (100) grows from 1 over its first `warmup` (600,000 ms), so that a cold process is not flooded.
"""

from __future__ import annotations

import bisect
import hashlib
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from headrace.services.invocation import Invocation
from headrace.services.invoker import Invoker

DEFAULT_WEIGHT = 100
DEFAULT_WARMUP_MS = 600_000


class LoadBalance(ABC):
    """Chooses; keeps what state it needs for one reference."""

    def select(self, invokers: Sequence[Invoker], invocation: Invocation) -> Invoker:
        return invokers[0] if len(invokers) == 1 else self.choose(invokers, invocation)

    @abstractmethod
    def choose(self, invokers: Sequence[Invoker], invocation: Invocation) -> Invoker:
        """One of at least two invokers."""


LoadBalanceFactory = Callable[[], LoadBalance]


def weight_of(invoker: Invoker, invocation: Invocation) -> int:
    """A provider's weight now."""
    url = invoker.url
    weight = url.method_int(invocation.method_name, "weight", DEFAULT_WEIGHT)
    if weight > 0:
        started = url.get_int("timestamp", 0)
        if started > 0:
            uptime = int(time.time() * 1000) - started
            warmup = url.get_int("warmup", DEFAULT_WARMUP_MS)
            if 0 < uptime < warmup:
                weight = max(1, min(weight, uptime * weight // warmup))
    return max(weight, 0)


def _by_weight(invokers: Sequence[Invoker], weights: Sequence[int]) -> Invoker:
    total = sum(weights)
    if total == 0 or min(weights) == max(weights):
        return random.choice(invokers)
    return random.choices(invokers, weights)[0]


class RandomLoadBalance(LoadBalance):
    """By chance, in proportion to the weights."""

    def choose(self, invokers: Sequence[Invoker], invocation: Invocation) -> Invoker:
        return _by_weight(invokers, [weight_of(invoker, invocation) for invoker in invokers])


class RoundRobinLoadBalance(LoadBalance):
    """In turn, each as often as its weight says and as evenly as that allows (smooth weighted round robin)."""

    def __init__(self) -> None:
        self._credits: dict[str, dict[str, int]] = {}

    def choose(self, invokers: Sequence[Invoker], invocation: Invocation) -> Invoker:
        before = self._credits.get(invocation.method_name, {})
        # Only present providers are carried over: one that left and comes back starts anew.
        credit = {invoker.url.identity: before.get(invoker.url.identity, 0) for invoker in invokers}
        self._credits[invocation.method_name] = credit
        total = 0
        best = invokers[0]
        for invoker in invokers:
            weight = weight_of(invoker, invocation)
            total += weight
            credit[invoker.url.identity] += weight
            if credit[invoker.url.identity] > credit[best.url.identity]:
                best = invoker
        credit[best.url.identity] -= total
        return best


class LeastActiveLoadBalance(LoadBalance):
    """To the one with the fewest calls under way; among equals by weighted chance."""

    def choose(self, invokers: Sequence[Invoker], invocation: Invocation) -> Invoker:
        name = invocation.method_name
        weights = {id(invoker): weight_of(invoker, invocation) for invoker in invokers}
        # One without weight is being drained: its idleness must not attract calls.
        wanted = [invoker for invoker in invokers if weights[id(invoker)]] or invokers
        least = min(invoker.active[name] for invoker in wanted)
        idle = [invoker for invoker in wanted if invoker.active[name] == least]
        return _by_weight(idle, [weights[id(invoker)] for invoker in idle])


class ConsistentHashLoadBalance(LoadBalance):
    """The same arguments to the same provider; few move when providers come and go.

    `hash.arguments` (0) names the arguments that count, `hash.nodes` (160) the points each provider has on the ring.
    """

    def __init__(self) -> None:
        self._rings: dict[str, _Ring] = {}

    def choose(self, invokers: Sequence[Invoker], invocation: Invocation) -> Invoker:
        identities = tuple(invoker.url.identity for invoker in invokers)
        ring = self._rings.get(invocation.method_name)
        if ring is None or ring.identities != identities:
            ring = self._rings[invocation.method_name] = _Ring(invokers, invocation.method_name)
        return ring.find(invokers, invocation)


class _Ring:
    """Points on a circle of 2³² places, each belonging to a provider."""

    def __init__(self, invokers: Sequence[Invoker], method_name: str) -> None:
        self.identities = tuple(invoker.url.identity for invoker in invokers)
        url = invokers[0].url
        nodes = url.method_int(method_name, "hash.nodes", 160)
        wanted = url.method(method_name, "hash.arguments", "0")
        self._arguments = [int(index) for index in wanted.split(",") if index.strip().isdecimal()]
        points: dict[int, int] = {}
        for number, invoker in enumerate(invokers):
            for replica in range(max(1, nodes // 4)):
                digest = _digest(f"{invoker.url.address}{replica}")
                for quarter in range(4):
                    points[_point(digest, quarter)] = number
        self._points = sorted(points)
        self._owners = [points[point] for point in self._points]

    def find(self, invokers: Sequence[Invoker], invocation: Invocation) -> Invoker:
        arguments = invocation.arguments
        key = "".join(str(arguments[index]) for index in self._arguments if index < len(arguments))
        place = bisect.bisect_left(self._points, _point(_digest(key), 0)) % len(self._points)
        return invokers[self._owners[place]]


def _digest(text: str) -> bytes:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()


def _point(digest: bytes, quarter: int) -> int:
    return int.from_bytes(digest[quarter * 4 : quarter * 4 + 4], "little")
