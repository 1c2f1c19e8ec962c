"""How long requests take, by API and by phase. Plain counts that the connections keep; nothing is formatted until somebody asks.

A request passes through Kafka's phases: request queue (it has arrived, earlier ones of its connection are served first), local (the
broker works on it), remote (it waits for replicas, records or members), response queue (earlier replies of its connection leave
first), response send (until the kernel has all of its reply). Most requests are answered while they are served and written
in the same turn: those only have a local time, and cost one addition to a list.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left
from collections.abc import Callable

log = logging.getLogger("headrace.slow")

BOUNDS = (
    *(round(step * 10.0**decade, 9) for decade in range(-5, 1) for step in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)),
    *(10.0, 15.0, 20.0, 30.0, 60.0),
)
"""Upper bounds of the buckets in seconds; a last bucket takes what is longer."""

SHORTEST = BOUNDS[0]
"""Phases other than local and total that are shorter are not put down; a page counts them in the first bucket, with no length."""

FETCH, JOIN_GROUP, SYNC_GROUP, SASL_AUTHENTICATE = 1, 11, 14, 36
FOLLOWER_FETCH = 128 + FETCH
"""Not a key of Kafka's: the fetches of followers are counted apart from those of consumers, as Kafka does."""
WAITS_BY_REQUEST = frozenset({FETCH, FOLLOWER_FETCH, JOIN_GROUP, SYNC_GROUP})
"""Requests that wait for others as long as they ask to: their remote time makes them no slower."""


class Spread:
    """Durations of one phase: how many fell into each bucket, and their sum."""

    __slots__ = ("buckets", "sum")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        self.buckets[bisect_left(BOUNDS, seconds)] += times
        self.sum += seconds * times


class RequestTimes:
    """One API's. `at_once` are the requests that have a local time only."""

    __slots__ = ("at_once", "key", "local", "queue", "remote", "response_queue", "response_send", "total")

    def __init__(self, key: int) -> None:
        self.key = key
        self.at_once = Spread()
        self.queue = Spread()
        self.local = Spread()
        self.remote = Spread()
        self.response_queue = Spread()
        self.response_send = Spread()
        self.total = Spread()
        """Of all requests that are not in `at_once`; each has an entry in `local`, those of the other phases may be missing."""

    def served(self, count: int, queued: float, local: float) -> None:
        """So many were answered at once, having waited for earlier ones of their connection."""
        self.queue.add(queued, count)
        self.local.add(local, count)
        self.total.add(queued + local, count)


class Underway:
    """A request that has been served and whose reply is not written yet.

    It is all put down at the end, and a phase of no length not at all: this is done for each request that waits.
    """

    __slots__ = ("_answered", "_local", "_queued", "_sending", "_served", "_statistics", "client", "times")

    def __init__(
        self,
        statistics: RequestStatistics,
        times: RequestTimes,
        queued: float,
        local: float,
        served: float,
        client: str,
    ) -> None:
        self._statistics = statistics
        self.times = times
        self.client = client
        self._queued = queued
        self._local = local
        self._served = self._answered = self._sending = served

    def answered(self) -> None:
        """Its reply is known."""
        self._answered = self._sending = self._statistics.now()

    def sends(self) -> None:
        """Its reply is the next to be written."""
        self._sending = self._statistics.now()

    def sent(self) -> None:
        """The kernel has its reply."""
        statistics, times = self._statistics, self.times
        now, served, local, queued = statistics.now(), self._served, self._local, self._queued
        answered, sending = self._answered, self._sending
        total = queued + local + now - served
        # What `add` would do, without the calls.
        spread = times.total
        spread.buckets[bisect_left(BOUNDS, total)] += 1
        spread.sum += total
        spread = times.local
        spread.buckets[bisect_left(BOUNDS, local)] += 1
        spread.sum += local
        if (remote := answered - served) >= SHORTEST:
            spread = times.remote
            spread.buckets[bisect_left(BOUNDS, remote)] += 1
            spread.sum += remote
        spread = times.response_send
        if (send := now - sending) >= SHORTEST:
            spread.buckets[bisect_left(BOUNDS, send)] += 1
        spread.sum += send
        if (waited := sending - answered) >= SHORTEST:
            times.response_queue.add(waited)
        if queued >= SHORTEST:
            times.queue.add(queued)
        if total > statistics.slow_seconds:
            judged = total - remote if times.key in WAITS_BY_REQUEST else total
            if judged > statistics.slow_seconds:
                statistics.report(times.key, self.client, total, queued, local, remote, waited, send)


class RequestStatistics(dict[int, RequestTimes]):
    """The times of every API that was asked for, by its key, and the log of slow requests."""

    def __init__(self, now: Callable[[], float], name_of: Callable[[int], str] = str) -> None:
        self.now = now
        self._name_of = name_of
        self.slow_seconds = math.inf
        """Requests that take longer are logged."""

    def __missing__(self, key: int) -> RequestTimes:
        times = self[key] = RequestTimes(key)
        return times

    def log_slower_than(self, milliseconds: int) -> None:
        """-1 logs none."""
        self.slow_seconds = milliseconds / 1000 if milliseconds >= 0 else math.inf

    def name(self, key: int) -> str:
        return self._name_of(key)

    def report(
        self,
        key: int,
        client: str,
        total: float,
        queued: float,
        local: float,
        remote: float = 0.0,
        response_queue: float = 0.0,
        response_send: float = 0.0,
    ) -> None:
        log.warning(
            "slow request: %s from %s took %.1f ms (request queue %.1f, local %.1f, remote %.1f, response queue %.1f, "
            "response send %.1f)",
            self._name_of(key),
            client,
            *(seconds * 1000 for seconds in (total, queued, local, remote, response_queue, response_send)),
        )
