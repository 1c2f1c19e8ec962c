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
        if not self._limits:
            self._sensors.clear()

    def limit(self, user: str, client_id: str) -> float | None:
        found = self._limits.find(user, client_id)
        return None if found is None else found[1]

    def of(self, user: str, client_id: str, now: int) -> tuple[S, float] | None:
        """The sensor of a client and its limit; None without a limit."""
        found = self._limits.find(user, client_id)
        if found is None:
            return None
        key, limit = found
        sensor = self._sensors.get(key)
        if sensor is None:
            if now - self._swept >= self.window.span_ms:
                self._sweep(now)
            sensor = self._sensors[key] = self._make(self.window)
        return sensor, limit

    def _sweep(self, now: int) -> None:
        self._swept = now
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

    def take_back(self, user: str, client_id: str, value: float, now: int) -> None:
        """What was just recorded was not used after all."""
        found = self.sensors.of(user, client_id, now)
        if found is not None:
            found[0].record(-value, now)

    def unused(self, user: str, client_id: str, now: int) -> bool:
        """Whether nothing that the client has used counts any more."""
        found = self.sensors.of(user, client_id, now)
        return found is None or found[0].spent(now)

    def most_at_once(self, user: str, client_id: str) -> int:
        """What a client may use at once without being throttled for that alone."""
        limit = self.sensors.limit(user, client_id)
        if limit is None:
            return INT_MAX
        window = self.sensors.window
        return min(int(limit * (window.samples - 1) * window.sample_ms / 1000), INT_MAX)


class MutationQuota:
    """Partitions that a client has created and deleted, per second."""

    def __init__(self, kind: str, window: Window) -> None:
        self.sensors = Sensors(kind, window, TokenBucket)

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
