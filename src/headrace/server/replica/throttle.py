"""A limit on the bytes that replicas use to catch up, so that a reassignment leaves bandwidth for other traffic (KIP-73).

A topic setting names the throttled replicas, a broker setting the rate. What is sent counts as a debt that is paid off at
that rate; while there is debt, replicas that are not in sync wait. Those in sync never do: a throttle must not cost a
partition its ISR.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.clock import Clock
from headrace.server.config.definition import LONG_MAX
from headrace.server.config.topic import TopicConfig
from headrace.server.replica.partition import Partition

EVERY_REPLICA = ("*",)


class ReplicationThrottle:
    """One direction of one broker: what it sends as a leader, or what it takes as a follower."""

    def __init__(
        self, broker_id: int, throttled: Callable[[TopicConfig], tuple[str, ...]], clock: Clock
    ) -> None:
        self._broker_id = broker_id
        self._throttled = throttled
        self._clock = clock
        self._rate = LONG_MAX
        self._debt = 0.0
        self._counted_at = 0.0

    def limit(self, rate: int) -> None:
        """Bytes per second from now on."""
        self._pay()
        self._rate = rate

    def covers(self, partition: Partition) -> bool:
        """Whether the topic's settings name this broker's replica of the partition."""
        named = self._throttled(partition.config)
        if not named or self._rate == LONG_MAX:
            return False
        return named == EVERY_REPLICA or f"{partition.index}:{self._broker_id}" in named

    def count(self, size: int) -> None:
        """Bytes that a replica it covers has taken, in sync or not."""
        if self._rate != LONG_MAX:
            self._pay()
            self._debt += size

    def seconds_left(self) -> float:
        """How long replicas that are not in sync have to wait."""
        if self._rate == 0:
            return 1.0  # Until the limit is raised.
        if self._debt <= 0:
            return 0.0
        self._pay()
        return self._debt / self._rate

    def _pay(self) -> None:
        now = self._clock.monotonic()
        self._debt = max(0.0, self._debt - (now - self._counted_at) * self._rate)
        self._counted_at = now


def leader_throttle(broker_id: int, clock: Clock) -> ReplicationThrottle:
    return ReplicationThrottle(broker_id, lambda topic: topic.leader_replication_throttled_replicas, clock)


def follower_throttle(broker_id: int, clock: Clock) -> ReplicationThrottle:
    return ReplicationThrottle(broker_id, lambda topic: topic.follower_replication_throttled_replicas, clock)
