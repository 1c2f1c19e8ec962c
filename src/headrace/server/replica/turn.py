"""Work put off to the end of the present turn, or of the round in which it falls.

A turn is the time in which the requests of one connection are served; waiting fetches look again at its end, once for all
that was appended in it, and without the detour of another round of the event loop. A turn in which nothing more can come may
be ended early, so that waiting requests are answered sooner.

A round is all turns between two waits of the event loop: at its end every connection that had something to read has been
served. Work put off to there is done together, as one more turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

Work = Callable[[], None]


class Turn:
    def __init__(self) -> None:
        self._depth = 0
        self._put_off: list[Work] = []
        self._scheduled = False
        self._after_round: list[Work] = []

    def put_off(self, work: Work) -> None:
        self._put_off.append(work)
        if self._depth == 0:
            self._schedule()

    def put_off_to_round(self, work: Work) -> None:
        if not self._after_round:
            asyncio.get_running_loop().call_soon(self._end_round)
        self._after_round.append(work)

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

    def _end_round(self) -> None:
        work, self._after_round = self._after_round, []
        self.begin()
        _do(work)
        self.end()

    def _run(self) -> None:
        """Run only what is queued now: work that it adds waits for the next turn, so that every turn ends."""
        work, self._put_off = self._put_off, []
        _do(work)
        if self._put_off:
            self._schedule()


def _do(work: list[Work]) -> None:
    for each in work:
        try:
            each()
        except Exception:
            log.exception("work at the end of a turn failed")
