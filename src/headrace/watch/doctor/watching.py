"""Two looks at what moves, some time apart: the lag of groups, and how the disks fill.

Owns the connection to the cluster. The first look is taken before the other checks and the second after them, so that waiting costs
less time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.client.admin import session_of
from headrace.client.administration import log_dirs
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.client.lag import GroupLag, LagMonitor
from headrace.client.lag_states import LagState

_REQUEST = 10_000
"""Milliseconds for one request."""

Sizes = dict[tuple[int, str, str, int], int]
"""Bytes by broker, directory, topic and partition."""


@dataclass(frozen=True, slots=True)
class Growth:
    seconds: float
    sizes: Sizes
    grown: Sizes
    """Only what grew."""


class Watch:
    def __init__(self, settings: dict[str, str], window: float) -> None:
        """`settings` are a client's, by librdkafka's names."""
        limits = {"request.timeout.ms": str(_REQUEST), "default.api.timeout.ms": str(_REQUEST)}
        self._monitor = LagMonitor({**settings, **limits}, window=window)
        self.window = window
        self.session: Session = session_of(self._monitor.admin)
        self._began: float | None = None
        self._brokers: Sequence[int] = ()
        self._first: dict[str, GroupLag] = {}
        self._sizes: Sizes = {}
        self._lags: list[GroupLag] | None = None
        self._growth: Growth | None = None

    def close(self) -> None:
        self._monitor.close()

    def begin(self, brokers: Sequence[int]) -> None:
        """The first look. What cannot be seen is reported by the check that asks for it."""
        self._brokers = brokers
        self._began = time.monotonic()
        try:
            self._sizes = self._measure_sizes()
            self._first = {group: self._monitor.measure(group) for group in self._monitor.groups()}
        except BrokerError:
            self._first = {}

    def lags(self) -> list[GroupLag]:
        """Every group, judged over the window; those that had nothing unread at first are not asked again."""
        if self._lags is None:
            unsettled = [group for group in self._monitor.groups() if not _is_settled(self._first.get(group))]
            if unsettled:
                self._wait()
            again = {group: self._monitor.measure(group) for group in unsettled}
            self._lags = [*({**self._first, **again}.values())]
        return self._lags

    def growth(self) -> Growth:
        if self._growth is None:
            self._wait()
            now = self._measure_sizes()
            grown = {
                key: size - self._sizes[key]
                for key, size in now.items()
                if key in self._sizes and size > self._sizes[key]
            }
            self._growth = Growth(time.monotonic() - (self._began or 0.0), now, grown)
        return self._growth

    def log_dirs(self, brokers: Sequence[int]) -> dict[int, list[log_dirs.LogDir]]:
        return {broker: log_dirs.describe(self.session, broker) for broker in brokers}

    def _measure_sizes(self) -> Sizes:
        return {
            (broker, directory.path, each.topic, each.partition): each.size
            for broker, found in self.log_dirs(self._brokers).items()
            for directory in found
            for each in directory.replicas
        }

    def _wait(self) -> None:
        if self._began is not None:
            time.sleep(max(0.0, self._began + self.window - time.monotonic()))


def _is_settled(lag: GroupLag | None) -> bool:
    return lag is not None and (not lag.records or lag.state == LagState.GONE)
