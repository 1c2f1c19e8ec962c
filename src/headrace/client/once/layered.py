"""Redis in front, SQL as the truth: Redis is believed when it knows an id, never when it does not.

An id is written to Redis only after the database has it as done, so what Redis knows is true. What it does not
know, because it lost its memory, evicted it or is away, is asked of the database.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from headrace.client.once.redis import RedisStore
from headrace.client.once.sql import SqlStore
from headrace.client.once.store import Claim, StoreUnavailable

T = TypeVar("T")
log = logging.getLogger("headrace.client.once")


class LayeredStore:
    """After Redis has failed to answer, it is left alone for ``pause`` seconds.

    >>> Once("billing", LayeredStore(RedisStore(Redis()), SqlStore(engine)))
    """

    def __init__(self, front: RedisStore, truth: SqlStore, *, pause: float = 5.0) -> None:
        self._front = front
        self._truth = truth
        self._pause = pause
        self._front_away_until = 0.0

    def claim(self, name: str, identity: bytes, token: str, lease: float | None) -> Claim:
        if self._ask_front(lambda: self._front.remembers(name, identity)):
            return Claim("done")
        claim = self._truth.claim(name, identity, token, lease)
        if claim.state == "done":
            self._ask_front(lambda: self._front.remember(name, identity))
        return claim

    def done(self, name: str, identity: bytes, token: str) -> bool:
        kept = self._truth.done(name, identity, token)
        if kept:
            self._ask_front(lambda: self._front.remember(name, identity))
        return kept

    def release(self, name: str, identity: bytes, token: str) -> None:
        self._truth.release(name, identity, token)

    def _ask_front(self, call: Callable[[], T]) -> T | None:
        if time.monotonic() < self._front_away_until:
            return None
        try:
            return call()
        except StoreUnavailable as away:
            self._front_away_until = time.monotonic() + self._pause
            log.warning("%s; the database is asked alone for the next %g s", away.__cause__, self._pause)
            return None
