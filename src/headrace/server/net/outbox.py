"""Replies that leave together at the end of the turn.

A write wakes its reader, which costs more than the write; many readers are often one process, and it is awake after the first.
So requests that one event answers (a batch is committed, a group has joined) are answered one after the other, when all work
of the turn is done.
"""

from __future__ import annotations

from headrace.server.net.connection import Connection
from headrace.server.replica.turn import Turn


class Outbox:
    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._replies: list[tuple[Connection, bytes | bytearray]] = []

    def put(self, connection: Connection, reply: bytes | bytearray) -> None:
        """Answer the request that muted this connection."""
        if not self._replies:
            self._turn.put_off(self._send)
        self._replies.append((connection, reply))

    def _send(self) -> None:
        replies, self._replies = self._replies, []
        for connection, reply in replies:
            connection.replies.send(reply)
        for connection, _ in replies:
            connection.unmute()
