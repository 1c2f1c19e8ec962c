"""The memory of ``once``: which ids are done and which are being handled now.

A claim is held under a token until it is done or released, or until its lease has run out because its holder
died. A store that cannot be asked raises StoreUnavailable; it never guesses.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from headrace.client.errors import TryLater
from headrace.client.repeats import Repeats

log = logging.getLogger("headrace.client.once.store")
log.addFilter(Repeats())


class StoreUnavailable(TryLater):
    """The store does not answer. The record is not handled and comes again later; no attempt is counted."""


class AlreadyRunning(TryLater):
    """Another worker is handling a record with this id, or died doing so and its lease has not run out."""


@contextmanager
def telling() -> Iterator[None]:
    """Logs that a store is down: the records wait for as long as it takes, and nothing else says why."""
    try:
        yield
    except StoreUnavailable as away:
        log.warning("%s", away)
        raise


@dataclass(frozen=True, slots=True)
class Claim:
    state: Literal["ours", "done", "running"]
    left: float = 0.0
    """When running: seconds until the lease runs out."""


class Store(Protocol):
    def claim(self, name: str, identity: bytes, token: str, lease: float | None) -> Claim:
        """Claim an id for ``lease`` seconds, or for ever: then a holder that dies keeps it.

        Claimed again under the same token, it is ours still: the first answer may have been lost.
        """
        ...

    def done(self, name: str, identity: bytes, token: str) -> bool:
        """The holder has finished. False when the lease had run out and another has claimed it since."""
        ...

    def release(self, name: str, identity: bytes, token: str) -> None:
        """The handler failed; the id may be claimed again."""
        ...
