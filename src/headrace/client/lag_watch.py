"""Measures groups again and again in its own thread: asking a cluster that is down takes long, and what shows the numbers
must not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from headrace.client.config import Config
from headrace.client.errors import BrokerError, ClientError
from headrace.client.lag import GroupLag, LagMonitor

_LAST_MEASURE = 5.0
_OLDEST = 5
"""Intervals after which a measurement is out of date."""


class LagWatch:
    """The lag of some groups, at most ``interval`` seconds old while the cluster answers."""

    def __init__(self, config: Config, groups: Sequence[str], interval: float = 2.0) -> None:
        self._config = config
        self.groups = groups
        self._interval = interval
        self._found: dict[str, GroupLag] = {}
        self._is_away = False
        self._asking_since: float | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lag", daemon=True)
        self._thread.start()

    def lag(self, group: str) -> GroupLag | None:
        """None while it is not known: before the first commit, and while the cluster does not answer."""
        found = self._found.get(group)
        return found if found is not None and time.time() - found.at < _OLDEST * self._interval else None

    @property
    def is_cluster_away(self) -> bool:
        """No broker answered the last measurement, or has answered for some time."""
        since = self._asking_since
        return self._is_away or (since is not None and time.monotonic() - since > _OLDEST * self._interval)

    def close(self) -> None:
        """Measure once more, if the cluster answers soon, and end."""
        self._closed.set()
        self._thread.join(_LAST_MEASURE)

    def _work(self) -> None:
        with LagMonitor(self._config) as monitor:
            while not self._closed.wait(self._interval):
                self._measure(monitor)
            self._measure(monitor)

    def _measure(self, monitor: LagMonitor) -> None:
        for group in self.groups:
            self._asking_since = time.monotonic()
            try:
                lag = monitor.measure(group)
            except ClientError as error:
                self._found.pop(group, None)  # the group's own runner reports what is wrong
                # librdkafka's own codes are negative: the cluster has said nothing.
                self._is_away = isinstance(error, BrokerError) and error.code < 0
                continue
            finally:
                self._asking_since = None
            self._is_away = False
            if lag.partitions:
                self._found[group] = lag
