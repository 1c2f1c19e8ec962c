"""For which client a broker passes a request on to the controller, whose quota it counts against.

It is part of the client id that brokers use among themselves, `headrace-broker-1 for <user> <client id>`: every version of every
request has one, and a controller of an earlier version sees in it a broker like any other.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote

_FOR = " for "
_LONGEST = 10_000
"""Of each name as it is written: a header holds 32,767 bytes. A client does not escape its quota by a name that is longer."""


class Client(NamedTuple):
    """Whom a quota counts: a user and a client id, either of them empty if there is none."""

    user: str
    client_id: str


def for_client(broker: bytes, client: Client) -> bytes:
    """The client id of a request that this broker passes on."""
    user, client_id = (quote(name, safe="")[:_LONGEST] for name in client)
    return broker + f"{_FOR}{user} {client_id}".encode()


def client_of(client_id: str) -> Client | None:
    """For whom another broker has passed a request on; None if it does not say."""
    _, found, names = client_id.partition(_FOR)
    user, _, own = names.partition(" ")
    return Client(unquote(user), unquote(own)) if found else None
