"""What a new connection of a listener has to pass before its requests are served."""

from __future__ import annotations

from typing import Protocol

from headrace.server.net.connection import Connection


class Gate(Protocol):
    def admit(self, connection: Connection) -> None:
        """Called once the transport is up, and TLS with it; may replace what serves the connection's frames."""
        ...
