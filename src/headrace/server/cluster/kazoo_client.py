"""kazoo's client as Headrace uses it: its threads are watched, and its messages are kept until the first connection.

A client that loses a thread silently stops hearing from ZooKeeper: an exception that kazoo does not expect, such as a reply to a
request it never sent, ends the thread that reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

ThreadEnded = Callable[[str], None]
"""Called with the reason, in the thread that ends."""


class FirstConnection(logging.Filter):
    """Until the first connection, keeps what kazoo logs about failed attempts instead of printing it."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = "no attempt has failed yet"

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            return True
        if record.levelno >= logging.WARNING:
            self.reason = record.getMessage()
        return False


class _WatchedThreads(SequentialThreadingHandler):  # type: ignore[misc]
    def __init__(self, ended: ThreadEnded) -> None:
        super().__init__()
        self._ended = ended

    def spawn(self, func: Callable[..., object], *args: Any, **kwargs: Any) -> threading.Thread:
        def run() -> None:
            reason = "it returned"
            try:
                func(*args, **kwargs)
            except BaseException as error:
                reason = f"{type(error).__name__}: {error}"
            self._ended(reason)

        thread: threading.Thread = super().spawn(run)
        return thread


def make_client(
    hosts: str, session_timeout: float, logger: logging.Logger, ended: ThreadEnded
) -> KazooClient:
    """A client, not started yet; ValueError when `hosts` is not a list of servers."""
    return KazooClient(
        hosts=hosts,
        timeout=session_timeout,
        handler=_WatchedThreads(ended),
        connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0),
        logger=logger,
    )


def kazoo_logger() -> logging.Logger:
    """A logger of its own for each client, so that a filter applies to that client only."""
    logger = logging.Logger("headrace.kazoo")
    logger.parent = logging.getLogger("headrace")
    return logger
