"""What a listener asks of a connection before it serves it."""

from __future__ import annotations

from typing import Protocol

from headrace.server.net.connection import Connection


class Gate(Protocol):
    def admit(self, connection: Connection) -> None:
        """Called once the transport, and TLS if there is any, is up; may replace `serve` and `max_frame`."""
        ...
