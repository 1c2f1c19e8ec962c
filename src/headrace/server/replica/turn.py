"""Work deferred to the end of the current turn: after the requests that arrived together, before the loop waits again.

Waiting fetches look again there, once for all that was appended in the turn, and without the detour of another round
of the event loop. A turn in which nothing more can come may be ended early, so that waiting requests are answered sooner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class Turn:
    def __init__(self) -> None:
        self._depth = 0
        self._put_off: list[Callable[[], None]] = []
        self._scheduled = False

    def put_off(self, work: Callable[[], None]) -> None:
        self._put_off.append(work)
        if self._depth == 0:
            self._schedule()

    def begin(self) -> None:
        self._depth += 1

    def end(self) -> None:
        if self._depth == 1 and self._put_off:
            self._run()
        self._depth -= 1

    def run_now(self) -> None:
        """Run the deferred work now instead of at the end of the turn."""
        if self._put_off:
            self._run()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run_scheduled)

    def _run_scheduled(self) -> None:
        self._scheduled = False
        self._depth += 1
        self._run()
        self._depth -= 1

    def _run(self) -> None:
        """Run only what is queued now: work that it adds waits for the next turn, so that every turn ends."""
        work, self._put_off = self._put_off, []
        for each in work:
            try:
                each()
            except Exception:
                log.exception("work at the end of a turn failed")
        if self._put_off:
            self._schedule()
