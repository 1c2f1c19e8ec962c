"""Writes the lag of groups to the history, again and again, through outages of the cluster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from headrace.client.admin import session_of
from headrace.client.config import Config, connection_settings, merged
from headrace.client.errors import ClientError
from headrace.client.lag import GroupLag, LagMonitor
from headrace.client.lag_history import INTERVAL, LagHistory
from headrace.client.producer import Producer
from headrace.client.repeats import Repeats

log = logging.getLogger("headrace.client.lag_recorder")
log.addFilter(Repeats())


class LagRecorder:
    """Records ``groups``, or every group there is; several at once write the same entries and do no harm."""

    def __init__(self, config: Config, groups: Sequence[str] = (), interval: float = INTERVAL) -> None:
        connection = connection_settings(merged(config, {}))
        self._groups = groups
        self._interval = interval
        self._monitor = LagMonitor(connection, window=max(interval * 2, 60.0))
        self._producer: Producer[bytes, bytes] = Producer(connection)
        self._history = LagHistory(connection, interval)

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set; a cluster that does not answer is logged and asked again."""
        while not stop.is_set():
            try:
                self.record()
            except ClientError as error:
                log.warning("the lag was not recorded: %s", error)
            stop.wait(self._interval)

    def record(self) -> list[GroupLag]:
        """Measure and record once."""
        session_of(self._monitor.admin).look_again()
        self._history.ensure(self._monitor.admin)
        lags = [self._monitor.measure(group) for group in self._groups or self._monitor.groups()]
        self._history.record(self._producer, lags)
        return lags

    def close(self) -> None:
        self._monitor.close()
        self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
