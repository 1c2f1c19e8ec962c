"""What every SASL mechanism of a broker is: it begins an exchange for each client, which ends in a grant or a refusal.

Nothing here knows about connections. A mechanism that has to wait (for the keys of an identity provider, for a thread)
returns an awaitable step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Grant:
    """Who a client proved to be."""

    user: str
    mechanism: str
    expires_ms: int | None = None
    """When what it logged in with expires, in wall-clock time; None for never."""
    by_token: bool = False
    """It logged in with a delegation token."""


class Refused(Exception):
    """A login that is refused: what the client is told and what only the broker's log says."""

    def __init__(self, cause: str, *, told: str | None = None, remedy: str = "", reply: bytes = b"") -> None:
        """Without `told` the client gets a sentence that gives nothing away. `reply` is the mechanism's own last word."""
        super().__init__(cause)
        self.cause = cause
        self.told = told
        self.remedy = remedy
        self.reply = reply


class Step(NamedTuple):
    """What to send back, and the grant if this was the last message."""

    reply: bytes
    grant: Grant | None = None


class Exchange(Protocol):
    """One client's login."""

    @property
    def user(self) -> str:
        """Whom the client says it is; empty until it has said so. For the log."""
        ...

    def take(self, token: bytes) -> Step | Awaitable[Step]:
        """Judge a client's message. Refused when it is wrong."""
        ...


class Mechanism(Protocol):
    """One mechanism of one listener."""

    def begin(self) -> Exchange: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """What a listener's clients may log in with."""

    mechanisms: Mapping[str, Mechanism]
    session_ms: Mapping[str, int] = field(default_factory=dict)
    """How long a session lasts, by mechanism (connections.max.reauth.ms); 0 or missing for any length."""
