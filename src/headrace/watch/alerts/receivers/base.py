"""What every receiver promises: a notice is delivered, or it says in one phrase why not."""

from __future__ import annotations

from typing import Protocol

from headrace.watch.alerts.notices import Notice


class NotDelivered(Exception):
    """``may_have_arrived`` when the answer is missing, not the notice."""

    def __init__(self, reason: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(reason)
        self.may_have_arrived = may_have_arrived


class Delivers(Protocol):
    def deliver(self, notice: Notice) -> None:
        """Once, in bounded time. Raises NotDelivered."""

    def close(self) -> None: ...
