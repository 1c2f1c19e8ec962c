"""What clients used of one kind of quota. A client that has been quiet for long enough to be as good as new is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from headrace.server.cluster.image import QuotaEntity
from headrace.server.quotas.arithmetic import INT_MAX, Rate, TokenBucket, Window
from headrace.server.quotas.limits import Key, QuotaLimits


class _Sensor(Protocol):
    def spent(self, now: int) -> bool: ...


S = TypeVar("S", bound=_Sensor)


class Sensors(Generic[S]):
    """One sensor for each group of clients that share a limit."""

    def __init__(self, kind: str, window: Window, make: Callable[[Window], S]) -> None:
        self.kind = kind
        self.window = window
        self._make = make
        self._limits = QuotaLimits({}, kind)
        self._sensors: dict[Key, S] = {}
        self._swept = 0
        self.on_change: Callable[[], None] | None = None
        """Called when sensors that `of` found may have been replaced by others."""

    def __len__(self) -> int:
        return len(self._sensors)

    @property
    def limited(self) -> bool:
        """Whether anybody has a limit."""
        return bool(self._limits)

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """The limits are these from now on; what was used before still counts."""
        self._limits = QuotaLimits(quotas, self.kind)
        if not self._limits:
            self._sensors.clear()

    def limits(self, user: str, client_id: str) -> bool:
        return self._limits.find(user, client_id) is not None

    def of(self, user: str, client_id: str, now: int) -> tuple[S, float] | None:
        """The sensor of a client and its limit; None without a limit."""
        found = self._limits.find(user, client_id)
        if found is None:
            return None
        if now - self._swept >= self.window.span_ms:
            self._sweep(now)
        key, limit = found
        sensor = self._sensors.get(key)
        if sensor is None:
            sensor = self._sensors[key] = self._make(self.window)
        return sensor, limit

    def _sweep(self, now: int) -> None:
        self._swept = now
        if self.on_change is not None:
            self.on_change()
        self._sensors = {key: sensor for key, sensor in self._sensors.items() if not sensor.spent(now)}


class ClientRate:
    """One client's rate, which it may share with others, and its limit."""

    __slots__ = ("_limit", "_longest_ms", "_most", "_rate")

    def __init__(self, rate: Rate, limit: float, window: Window, longest_ms: int) -> None:
        self._rate = rate
        self._limit = limit
        self._longest_ms = longest_ms
        self._most = limit * (window.samples - 1) * window.sample_ms / 1000

    def record(self, value: float, now: int) -> int:
        """Count what the client used; how many milliseconds it has to wait for that."""
        wait = self._rate.use(value, self._limit, now)
        return min(wait, self._longest_ms) if wait else 0

    def record_or_refuse(self, value: float, now: int) -> tuple[int, bool]:
        """The same, and whether the client has to do without what it would have used, which then does not count.

        What is too much for the quota in any case is let through when nothing else counts: the client would otherwise
        never get it.
        """
        unavoidable = value > self._most and self._rate.spent(now)
        throttle = self.record(value, now)
        if not throttle or unavoidable:
            return throttle, False
        self.take_back(value, now)
        return throttle, True

    def take_back(self, value: float, now: int) -> None:
        """What was just recorded was not used after all."""
        self._rate.record(-value, now)

    @property
    def most_at_once(self) -> int:
        """What the client may use at once without being throttled for that alone."""
        return min(int(self._most), INT_MAX)


class RateQuota:
    """Bytes, or request time, per second. `longest_ms` is how long a client waits at most at a time."""

    def __init__(self, kind: str, window: Window, longest_ms: int = INT_MAX) -> None:
        self.sensors = Sensors(kind, window, Rate)
        self._longest_ms = longest_ms

    def of(self, user: str, client_id: str, now: int) -> ClientRate | None:
        """None without a limit. To be asked for again when the sensors have changed."""
        found = self.sensors.of(user, client_id, now)
        return None if found is None else ClientRate(*found, self.sensors.window, self._longest_ms)


class MutationQuota:
    """Partitions that a client has created and deleted, per second."""

    def __init__(self, kind: str, window: Window) -> None:
        self.sensors = Sensors(kind, window, TokenBucket)

    def limits(self, user: str, client_id: str) -> bool:
        return self.sensors.limits(user, client_id)

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
