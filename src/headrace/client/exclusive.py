"""One at a time in the whole cluster: a turn is a membership in a group, held by the member that has partition 0.

The holder does not poll, so a newcomer's rebalance waits until it leaves. A holder that dies is dropped after
its session timeout.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headrace.client.consumer import Consumer
from headrace.client.errors import ClientError
from headrace.client.record import TopicPartition

_PATIENCE = 120.0
_LONGEST_TURN_MS = 86_400_000
SESSION_MS = 45_000


@contextmanager
def exclusive(
    connection: Mapping[str, object], group: str, topic: str, doing: str, session_ms: int = SESSION_MS
) -> Iterator[None]:
    """Raises ClientError if another holder keeps the turn for two minutes; one that is dead keeps it for ``session_ms``."""
    settings = {
        "group.id": group,
        "session.timeout.ms": session_ms,
        "enable.auto.commit": False,
        "partition.assignment.strategy": "range",
        "max.poll.interval.ms": _LONGEST_TURN_MS,
    }
    with Consumer[bytes, bytes]({**connection, **settings}) as member:
        member.subscribe(topic)
        deadline = time.monotonic() + _PATIENCE
        while TopicPartition(topic, 0) not in member.assignment():
            if time.monotonic() >= deadline:
                raise ClientError(f"somebody else has been {doing} for {_PATIENCE:.0f} s: try again later")
            member.poll(0.1)
        yield
