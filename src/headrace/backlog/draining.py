"""Draining a backlog with the handler that reads the topic: exactly up to the cut, as fast as is wanted.

Started as often as you like, in as many processes; each ends when all partitions are drained.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from headrace.backlog import joining
from headrace.backlog.backlogs import Backlogs
from headrace.backlog.divert import Divert
from headrace.backlog.states import State, Way
from headrace.client.config import Config, merged
from headrace.client.dead_letters import default_name
from headrace.client.errors import ConfigError
from headrace.client.positions import Offsets
from headrace.client.record import Record, TopicPartition
from headrace.client.runner.aio import AsyncRunner
from headrace.client.runner.threads import Runner

P = ParamSpec("P")
T = TypeVar("T")


def drain(
    handler: Callable[[Record[Any, Any]], object],
    config: Config = None,
    /,
    *,
    group: str,
    topic: str,
    rate: float | None = None,
    concurrency: int = 8,
    **options: Any,
) -> None:
    """Handle the backlog that was diverted from ``group``, and return when all of it is drained, by this process or others.

    >>> drain(handle, "localhost:9092", group="billing", topic="orders", rate=500)

    ``rate`` is how many records a second this process starts at most; ``options`` are those of ``Runner``.
    """
    source, backlog, ends = _found(config, group, topic)
    runner: Runner[Any, Any] = Runner(
        handler if rate is None else _paced(handler, Slots(rate)),
        merged(config, {}),
        topics=source,
        group_id=backlog,
        until=ends,
        concurrency=_bounded(concurrency, rate),
        max_in_flight=_bounded(options.pop("max_in_flight", 1000), rate),
        **_as_a_backlog(topic, options),
    )
    runner.run()


async def drain_async(
    handler: Callable[[Record[Any, Any]], Awaitable[object]],
    config: Config = None,
    /,
    *,
    group: str,
    topic: str,
    rate: float | None = None,
    concurrency: int = 100,
    **options: Any,
) -> None:
    """``drain`` for an ``async def`` handler, with the options of ``AsyncRunner``."""
    source, backlog, ends = await asyncio.to_thread(_found, config, group, topic)
    runner: AsyncRunner[Any, Any] = AsyncRunner(
        handler if rate is None else _paced_async(handler, Slots(rate)),
        merged(config, {}),
        topics=source,
        group_id=backlog,
        until=ends,
        concurrency=_bounded(concurrency, rate),
        max_in_flight=_bounded(options.pop("max_in_flight", 1000), rate),
        **_as_a_backlog(topic, options),
    )
    await runner.run()


class Slots:
    """Moments a fixed time apart, given out one by one; those that nobody took are not made up for."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        if not rate > 0:
            raise ConfigError(f"rate is {rate}: it must be a number of records per second above 0")
        self._apart = 1 / rate
        self._now = now
        self._lock = threading.Lock()
        self._next = 0.0

    def take(self) -> float:
        """Take the next one; returns the seconds until then."""
        with self._lock:
            now = self._now()
            mine = max(now, self._next)
            self._next = mine + self._apart
            return mine - now


def _found(config: Config, group: str, topic: str) -> tuple[str, str, Offsets]:
    """Where the backlog is read, under which name, and where it ends."""
    with Backlogs(config) as backlogs:
        divert = _the_divert(backlogs, group, topic)
        ends = joining.ends_of_backlog(backlogs.site, divert)
        return (
            divert.backlog_topic,
            divert.backlog_group,
            {TopicPartition(divert.backlog_topic, number): end for number, end in ends.items()},
        )


def _the_divert(backlogs: Backlogs, group: str, topic: str) -> Divert:
    found = next(iter(backlogs.diverts(group, topic)), None)
    if found is None or found.way is Way.FRESH or found.state is not State.DIVERTED:
        state = (
            "it is not diverted"
            if found is None
            else "its producers write to a fresh topic, and the group itself drains it"
            if found.way is Way.FRESH
            else f"its divert is {found.state}"
        )
        raise ConfigError(
            f"there is no backlog of topic {topic} to drain for group {group}: {state}; see headrace backlog status"
        )
    return found


def _bounded(given: int, rate: float | None) -> int:
    """No more records at once than a second has slots: one that waits for its slot holds up the end of the run."""
    return given if rate is None else max(1, min(given, math.ceil(rate)))


def _as_a_backlog(topic: str, options: dict[str, Any]) -> dict[str, Any]:
    # The divert has committed an offset for each partition; if one was deleted by now, what is left is read.
    # A copy ends with the join; its dead letters go where those of the original go.
    return {"auto_offset_reset": "earliest", "dead_letters": lambda _: default_name(topic), **options}


def _paced(handler: Callable[P, T], slots: Slots) -> Callable[P, T]:
    def paced(*args: P.args, **kwargs: P.kwargs) -> T:
        time.sleep(slots.take())
        return handler(*args, **kwargs)

    return paced


def _paced_async(handler: Callable[P, Awaitable[T]], slots: Slots) -> Callable[P, Awaitable[T]]:
    async def paced(*args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(slots.take())
        return await handler(*args, **kwargs)

    return paced
