"""What clients used of one kind of quota. A client that has been quiet for long enough to be as good as new is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from headrace.server.cluster.image import QuotaEntity
from headrace.server.quotas.arithmetic import INT_MAX, Rate, TokenBucket, Window
from headrace.server.quotas.limits import Key, Limits


class _Sensor(Protocol):
    def spent(self, now: int) -> bool: ...


S = TypeVar("S", bound=_Sensor)


class Sensors(Generic[S]):
    """One sensor for each group of clients that share a limit."""

    def __init__(self, kind: str, window: Window, make: Callable[[Window], S]) -> None:
        self.kind = kind
        self.window = window
        self._make = make
        self._limits = Limits({}, kind)
        self._sensors: dict[Key, S] = {}
        self._known: dict[Key, tuple[S, float]] = {}
        """What was found for clients of late, by user and client id."""
        self._swept = 0

    def __len__(self) -> int:
        return len(self._sensors)

    @property
    def limited(self) -> bool:
        """Whether anybody has a limit."""
        return bool(self._limits)

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """The limits are these from now on; what was used before still counts."""
        self._limits = Limits(quotas, self.kind)
        self._known.clear()
        if not self._limits:
            self._sensors.clear()

    def of(self, user: str, client_id: str, now: int) -> tuple[S, float] | None:
        """The sensor of a client and its limit; None without a limit."""
        known = self._known.get((user, client_id))
        if known is not None:
            return known
        found = self._limits.find(user, client_id)
        if found is None:
            return None
        if now - self._swept >= self.window.span_ms:
            self._sweep(now)
        key, limit = found
        sensor = self._sensors.get(key)
        if sensor is None:
            sensor = self._sensors[key] = self._make(self.window)
        self._known[user, client_id] = sensor, limit
        return sensor, limit

    def _sweep(self, now: int) -> None:
        self._swept = now
        self._known.clear()
        self._sensors = {key: sensor for key, sensor in self._sensors.items() if not sensor.spent(now)}


class RateQuota:
    """Bytes, or request time, per second. `longest_ms` is how long a client waits at most at a time."""

    def __init__(self, kind: str, window: Window, longest_ms: int = INT_MAX) -> None:
        self.sensors = Sensors(kind, window, Rate)
        self._longest_ms = longest_ms

    def record(self, user: str, client_id: str, value: float, now: int) -> int:
        """Count what a client used; how many milliseconds it has to wait for that."""
        found = self.sensors.of(user, client_id, now)
        if found is None:
            return 0
        rate, limit = found
        rate.record(value, now)
        return min(rate.throttle_ms(limit, now), self._longest_ms)

    def record_or_refuse(self, user: str, client_id: str, value: float, now: int) -> tuple[int, bool]:
        """The same, and whether the client has to do without what it would have used, which then does not count.

        What is too much for the quota in any case is let through when nothing else counts: the client would otherwise
        never get it.
        """
        found = self.sensors.of(user, client_id, now)
        if found is None:
            return 0, False
        rate, limit = found
        unavoidable = value > self._most_at_once(limit) and rate.spent(now)
        rate.record(value, now)
        throttle = min(rate.throttle_ms(limit, now), self._longest_ms)
        if not throttle or unavoidable:
            return throttle, False
        rate.record(-value, now)
        return throttle, True

    def take_back(self, user: str, client_id: str, value: float, now: int) -> None:
        """What was just recorded was not used after all."""
        found = self.sensors.of(user, client_id, now)
        if found is not None:
            found[0].record(-value, now)

    def most_at_once(self, user: str, client_id: str, now: int) -> int:
        """What a client may use at once without being throttled for that alone."""
        found = self.sensors.of(user, client_id, now)
        return INT_MAX if found is None else min(int(self._most_at_once(found[1])), INT_MAX)

    def _most_at_once(self, limit: float) -> float:
        window = self.sensors.window
        return limit * (window.samples - 1) * window.sample_ms / 1000


class MutationQuota:
    """Partitions that a client has created and deleted, per second."""

    def __init__(self, kind: str, window: Window) -> None:
        self.sensors = Sensors(kind, window, TokenBucket)

    def limits(self, user: str, client_id: str, now: int) -> bool:
        return self.sensors.of(user, client_id, now) is not None

    def take_if_allowed(self, user: str, client_id: str, value: float, now: int) -> int:
        """Take tokens unless the bucket is overdrawn; in that case, how many milliseconds until it no longer is."""
        found = self.sensors.of(user, client_id, now)
        if found is None:
            return 0
        bucket, limit = found
        throttle = bucket.throttle_ms(limit, now)
        if not throttle:
            bucket.take(value, limit, now)
        return throttle

    def take(self, user: str, client_id: str, value: float, now: int) -> int:
        """Take tokens in any case; how many milliseconds the client has to wait for that."""
        found = self.sensors.of(user, client_id, now)
        if found is None:
            return 0
        bucket, limit = found
        bucket.take(value, limit, now)
        return bucket.throttle_ms(limit, now)
