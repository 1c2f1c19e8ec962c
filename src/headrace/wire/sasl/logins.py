"""What a client logs in with, and the exchange that does it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from headrace.wire.sasl import plain, scram

MECHANISMS = (plain.MECHANISM, *scram.ALGORITHMS)


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a password."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    by_token: bool = False
    """They are the id and the HMAC of a delegation token (SCRAM only)."""


def client_exchange(login: Login) -> Generator[bytes, bytes]:
    """Yields what to send and takes what came back. Ends when the client has nothing more to say."""
    if login.mechanism == plain.MECHANISM:
        yield plain.client_message(login.username, login.password)
        return
    extensions = {"tokenauth": "true"} if login.by_token else None
    yield from scram.client_exchange(login.mechanism, login.username, login.password, extensions)
