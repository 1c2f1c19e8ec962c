"""Log lines about connections that fail, at most one a minute for each peer and cause: a client that retries must not fill the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

QUIET_SECONDS = 60.0
MOST_REMEMBERED = 1000


class Refusals:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._said: dict[tuple[str, str], tuple[float, int]] = {}
        """When a sentence was last logged for a peer, and how often it was held back since."""

    def warn(self, peer: str, sentence: str) -> None:
        now, key = self._now(), (peer, sentence)
        last, held_back = self._said.pop(key, (float("-inf"), 0))
        if now - last < QUIET_SECONDS:
            self._said[key] = last, held_back + 1
            return
        while len(self._said) >= MOST_REMEMBERED:
            del self._said[next(iter(self._said))]
        self._said[key] = now, 0
        again = f" ({held_back} more times since it was last reported)" if held_back else ""
        log.warning("closed connection from %s: %s%s", peer, sentence, again)
