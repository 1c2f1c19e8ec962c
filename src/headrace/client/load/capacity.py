"""The highest rate that is sustained: found by doubling until it is not, then by halving the distance between the two."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.client.administration import configs, topics
from headrace.client.administration.session import Session
from headrace.client.load.open_loop import Bound, OpenLoop, Step

PREFIX = "headrace-capacity-"
LOWEST, HIGHEST = 1.0, 1_000_000.0
MARGIN = 0.7
"""Part of the sustained rate to plan for."""
_NARROW = 3.0
"""How many times the bound a step may miss it by and still be tried again: the machine may have been busy elsewhere."""


@dataclass(slots=True)
class Capacity:
    sustained: Step | None = None
    """The fastest step that kept the bound."""
    failed: Step | None = None
    """The slowest that did not; None when the highest rate asked for was sustained."""
    steps: list[Step] = field(default_factory=list)

    @property
    def plan_for(self) -> float | None:
        return None if self.sustained is None else MARGIN * self.sustained.rate


def find(
    loop: OpenLoop,
    bound: Bound,
    seconds: float,
    *,
    start: float = 1_000.0,
    highest: float = HIGHEST,
    precision: float = 0.1,
    on_step: Callable[[Step], object] = lambda _: None,
) -> Capacity:
    """`seconds` is how long each rate is held; the answer is within `precision` of the first rate that fails."""
    found = Capacity()

    def sustains(rate: float) -> bool:
        step = loop.run(rate, seconds, bound)
        found.steps.append(step)
        on_step(step)
        if step.shortfall(bound) and _is_narrow(step, bound):
            step = loop.run(rate, seconds, bound)
            found.steps.append(step)
            on_step(step)
        if step.shortfall(bound):
            found.failed = step
            return False
        found.sustained = step
        return True

    loop.run(min(start, 100.0), min(seconds, 1.0), bound)  # connections are made, and code is warm
    search(sustains, start, highest, precision)
    return found


def search(
    sustains: Callable[[float], bool], start: float, highest: float, precision: float
) -> tuple[float | None, float | None]:
    """The fastest rate that is sustained and the slowest that is not, of those tried."""
    low: float | None = None
    high: float | None = None
    rate = min(start, highest)
    while high is None:
        if not sustains(rate):
            high = rate
        else:
            low = rate
            if rate >= highest:
                return low, None
            rate = min(2 * rate, highest)
    while low is None and high > LOWEST:
        rate = max(LOWEST, high / 2)
        if sustains(rate):
            low = rate
        else:
            high = rate
    while low is not None and high - low > precision * low:
        rate = (low + high) / 2
        if sustains(rate):
            low = rate
        else:
            high = rate
    return low, high


def _is_narrow(step: Step, bound: Bound) -> bool:
    whole = step.arrived == step.sent and not step.failure
    return whole and step.at_bound <= _NARROW * bound.seconds * 1000


@contextmanager
def scratch_topic(
    session: Session,
    *,
    like: str | None = None,
    partitions: int | None = None,
    replication_factor: int | None = None,
) -> Iterator[str]:
    """A topic of our own, deleted at the end whatever happens; with the partitions, replicas and settings of another one."""
    settings: dict[str, str] = {}
    if like is not None:
        (model,) = topics.describe(session, [like])
        partitions = partitions or len(model.partitions)
        replication_factor = replication_factor or model.replication_factor
        settings = {
            each.name: each.value
            for each in configs.describe(session, "topic", [like])[like]
            if each.source == "DYNAMIC_TOPIC_CONFIG"
            and each.value is not None
            and "throttled" not in each.name
        }
    name = f"{PREFIX}{os.urandom(4).hex()}"
    refusals = topics.create(
        session, [name], partitions=partitions, replication_factor=replication_factor, config=settings
    )
    for refused in refusals.values():
        raise refused
    try:
        yield name
    finally:
        for refused in topics.delete(session, [name]).values():
            raise refused
