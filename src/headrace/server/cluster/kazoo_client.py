"""kazoo's client as Headrace uses it: its threads are watched, and its messages are kept until the first connection.

A client that loses a thread silently stops hearing from ZooKeeper: an exception that kazoo does not expect, such as a reply to a
request it never sent, ends the thread that reads.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

from headrace.server.cluster.zookeeper_access import ZooKeeperAccess

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


class _Threads(SequentialThreadingHandler):  # type: ignore[misc]
    """Watches its threads, and opens connections with the broker's own TLS settings."""

    def __init__(self, ended: ThreadEnded, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._ended = ended
        self._tls = tls

    def create_connection(
        self,
        address: tuple[str, int],
        hostname: str | None = None,
        timeout: float | None = None,
        **tls_of_kazoo: object,
    ) -> socket.socket:
        plain = socket.create_connection(address, timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=hostname)
        except BaseException:
            plain.close()
            raise

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
    hosts: str, session_timeout: float, access: ZooKeeperAccess, logger: logging.Logger, ended: ThreadEnded
) -> KazooClient:
    """A client, not started yet; ValueError when `hosts` is not a list of servers."""
    return KazooClient(
        hosts=hosts,
        timeout=session_timeout,
        handler=_Threads(ended, access.tls),
        connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0),
        logger=logger,
        **access.client_options(),
    )


def kazoo_logger() -> logging.Logger:
    """A logger of its own for each client, so that a filter applies to that client only."""
    logger = logging.Logger("headrace.kazoo")
    logger.parent = logging.getLogger("headrace")
    return logger
