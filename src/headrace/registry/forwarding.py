"""Passing a change on to the instance that writes, as it came, and its answer back."""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headrace.registry.election import Instance

FORWARDED = b"x-forward"
"""On a request that an instance passed on: it is not passed on again."""
OFFSET = "headrace-offset"
"""On an answer: how far the topic has to be read to know what was changed."""
_PASSED_ON = (b"authorization", b"content-type", b"accept", b"confluent-accept-unknown-properties")
_TIMEOUT = 30.0


class Unreachable(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    offset: int | None


class Forwarding:
    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._threads = ThreadPoolExecutor(8, "headrace-registry-forward")
        self._local = threading.local()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def pass_on(
        self, leader: Instance, method: str, path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> Answer:
        passed = {name.decode(): value.decode("latin-1") for name, value in headers if name in _PASSED_ON}
        passed[FORWARDED.decode()] = "true"
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, leader, method, path, passed, body)

    def _ask(self, leader: Instance, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """In a thread, which keeps its connection."""
        kept: tuple[str, http.client.HTTPConnection] | None = getattr(self._local, "kept", None)
        if kept is not None and kept[0] == leader.url and method != "DELETE":
            try:
                return self._exchange(kept[1], method, path, headers, body)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                kept[1].close()  # it was idle for too long; doing this twice does no harm
        elif kept is not None:
            kept[1].close()
        self._local.kept = None
        connection = (
            http.client.HTTPSConnection(leader.host, leader.port, timeout=_TIMEOUT, context=self._tls)
            if leader.scheme == "https"
            else http.client.HTTPConnection(leader.host, leader.port, timeout=_TIMEOUT)
        )
        try:
            answer = self._exchange(connection, method, path, headers, body)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable(f"{leader.url} cannot be reached: {error}") from None
        self._local.kept = leader.url, connection
        return answer

    @staticmethod
    def _exchange(
        connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Answer:
        connection.request(method, path, body or None, headers)
        reply = connection.getresponse()
        offset = reply.getheader(OFFSET, "")
        return Answer(reply.status, reply.read(), int(offset) if offset.isdigit() else None)
