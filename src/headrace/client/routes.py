"""Where records for a topic go instead, in the compacted topic `__headrace_routes`; running producers follow within a second.

A producer made with ``routes=True`` has a `Routes`. Sending looks a topic up in a dictionary, which is empty as long as nothing is routed.
Other producers pay nothing and follow no route.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client.control_follower import ControlFollower, Table
from headrace.client.errors import BrokerError

TOPIC = "__headrace_routes"


@dataclass(frozen=True, slots=True)
class Route:
    topic: str
    to: str | None
    """None ends the route."""

    def as_document(self) -> dict[str, Any] | None:
        return None if self.to is None else {"to": self.to}


class Routes:
    """The routes there are now, followed until it is closed."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._to: dict[str, str] = {}
        self._follower = ControlFollower(TOPIC, config, self._changed)

    def of(self, topic: str) -> str:
        """Where a record for this topic goes."""
        return self._to.get(topic, topic) if self._to else topic

    @property
    def known(self) -> bool:
        """Whether the routes have been read once, so that no record goes where it should not by now."""
        return self._follower.known.is_set()

    def await_known(self, patience: float) -> None:
        """Raises BrokerError when the routes could not be read in time."""
        if not self._follower.known.wait(patience):
            raise BrokerError(
                f"the routes of topics could not be read from {TOPIC} within {patience:g} s (max.block.ms): check "
                "bootstrap.servers and that the brokers are running",
                retriable=True,
            )

    def end(self) -> None:
        """Follow no longer, without waiting for the thread that does."""
        self._follower.end()

    def close(self) -> None:
        self._follower.close()

    def _changed(self, table: Table) -> None:
        # Replaced as a whole: senders in other threads see the old routes or the new ones.
        self._to = {topic: to for topic, each in table.items() if isinstance(to := each.get("to"), str)}
