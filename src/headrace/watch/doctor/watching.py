"""Two looks at what moves, some time apart: the lag of groups, and how the disks fill.

Owns the connection to the cluster. The first look is taken before the other checks and the second after them, so that waiting costs
less time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headrace.client.admin import Admin, session_of
from headrace.client.administration import groups, log_dirs
from headrace.client.administration.lag import ONE_RECORD
from headrace.client.administration.session import Session
from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError
from headrace.client.lag import GroupLag, LagMeter
from headrace.client.lag_states import LagState

_REQUEST = 10_000
"""Milliseconds for one request."""
_PATIENCE = 10.0
"""Seconds for one look at all groups, unless the window is longer."""

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
        self.settings = settings
        self._admin = Admin({**settings, **limits})
        self._consumer: Consumer[bytes, bytes] | None = None
        self.window = window
        self.session: Session = session_of(self._admin)
        self._sized = self._looked = time.monotonic()
        """When sizes were measured first, and when the first look was over."""
        self._brokers: Sequence[int] = ()
        self._first: dict[str, GroupLag] = {}
        self._sizes: Sizes = {}
        self._lags: list[GroupLag] | None = None
        self.unseen = 0
        """Groups that there was no time for, or that this user may not see."""
        self._growth: Growth | None = None

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._admin.close()

    def begin(self, brokers: Sequence[int]) -> None:
        """The first look. What cannot be seen is reported by the check that asks for it."""
        self._brokers = brokers
        try:
            self._sizes = self._measure_sizes()
            self._sized = time.monotonic()
            self._first = self._measure(self._groups(), time.monotonic() + max(self.window, _PATIENCE))
        except BrokerError:
            self._first = {}
        self._looked = time.monotonic()

    def lags(self) -> list[GroupLag]:
        """Every group that was seen, judged over the window; those that had nothing unread at first are not asked again."""
        if self._lags is None:
            groups_now = self._groups()
            seen = [group for group in groups_now if group in self._first] or groups_now
            unsettled = [group for group in seen if not _is_settled(self._first.get(group))]
            if unsettled:
                self._wait()
            found = {
                **self._first,
                **self._measure(unsettled, time.monotonic() + max(self.window, _PATIENCE)),
            }
            self._lags = list(found.values())
            self.unseen = len(groups_now) - len(found)
        return self._lags

    def _measure(self, names: Sequence[str], deadline: float) -> dict[str, GroupLag]:
        """The groups that could be measured by then; a group that this user may not see does not hide the others."""
        found: dict[str, GroupLag] = {}
        refused: BrokerError | None = None
        for group in names:
            if time.monotonic() > deadline:
                break
            try:
                found[group] = self._meter.measure(group)
            except BrokerError as error:
                refused = error
        if refused is not None and not found:
            raise refused
        return found

    def growth(self) -> Growth:
        if self._growth is None:
            self._wait()
            now = self._measure_sizes()
            grown = {
                key: size - self._sizes[key]
                for key, size in now.items()
                if key in self._sizes and size > self._sizes[key]
            }
            self._growth = Growth(time.monotonic() - self._sized, now, grown)
        return self._growth

    def log_dirs(self, brokers: Sequence[int]) -> dict[int, list[log_dirs.LogDir]]:
        return {broker: log_dirs.describe(self.session, broker) for broker in brokers}

    def _groups(self) -> list[str]:
        return [each.group for each in groups.listings(self.session, types=groups.ALL_TYPES)]

    @cached_property
    def _meter(self) -> LagMeter:
        """Made when there are groups: a consumer asks for its coordinator at once, and that makes __consumer_offsets."""
        self._consumer = Consumer({**connection_settings(self.settings), **ONE_RECORD})
        return LagMeter(self.session, self._consumer.librdkafka, self.window)

    def _measure_sizes(self) -> Sizes:
        return {
            (broker, directory.path, each.topic, each.partition): each.size
            for broker, found in self.log_dirs(self._brokers).items()
            for directory in found
            for each in directory.replicas
        }

    def _wait(self) -> None:
        time.sleep(max(0.0, self._looked + self.window - time.monotonic()))


def _is_settled(lag: GroupLag | None) -> bool:
    return lag is not None and (not lag.records or lag.state == LagState.GONE)
