"""What a handler is given: the broker's engines, and who is asking in which version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.services import Services

FAILED_INSIDE = "the request failed inside the broker; the log above says how"
"""Why a connection is cut when a request cannot be answered."""


@dataclass(slots=True)
class Context:
    services: Services
    connection: Connection
    version: int
    correlation_id: int
    client_id: str | None

    @property
    def principal(self) -> str:
        return self.connection.principal

    @property
    def client_host(self) -> str:
        """As Kafka shows it: a slash before the address."""
        return f"/{self.connection.peer_host}"
