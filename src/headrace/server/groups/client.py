"""The client of a request, as far as a group needs to know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


def _everything(topic: str) -> bool:
    return True


class Client(NamedTuple):
    client_id: str
    host: str
    """As Java prints an address, `/10.0.0.7`: it is shown to users and compared by their tools."""
    version: int
    """Of the API, where behaviour depends on it."""
    may_describe: Callable[[str], bool] = _everything
    """Topics the client may not see do not exist for its patterns."""
