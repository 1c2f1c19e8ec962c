"""A server that is down fails many times a second; the log mentions it now and then."""

from __future__ import annotations

import logging


class Repeats(logging.Filter):
    """For a logger: a line that was just written is left out."""

    SECONDS = 30.0

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = record.created
        self._told = {text: at for text, at in list(self._told.items()) if abs(now - at) < self.SECONDS}
        # librdkafka ends its lines with how long the attempt took.
        text = record.getMessage().partition(" (after ")[0]
        return self._told.setdefault(text, now) == now
