"""The broker's log on standard error: one line for each message, whatever names and reasons clients chose for what it mentions."""

from __future__ import annotations

import logging
import sys


def log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class OneLine(logging.Formatter):
    """Escapes what could begin another line, or change the terminal; a traceback follows on lines of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        text = super().formatMessage(record)
        return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
