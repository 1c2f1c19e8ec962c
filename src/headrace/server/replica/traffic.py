"""What went through the partitions of a topic on this broker: counts that only grow, as long as the broker runs.

They belong to the topic rather than to a partition, so that they do not go back when a partition moves away; those of a deleted
topic go on counting in the broker's totals.
"""

from __future__ import annotations

from collections.abc import Iterator

COUNTS = (
    "messages_in",
    "bytes_in",
    "bytes_out",
    "produce_requests",
    "failed_produce_requests",
    "fetch_requests",
    "failed_fetch_requests",
    "replication_bytes_in",
    "replication_bytes_out",
)


class Traffic:
    __slots__ = COUNTS

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        """To consumers; what followers take is in `replication_bytes_out`."""
        self.produce_requests = 0
        """As Kafka counts them: once for every partition in a request. Failed ones are in `failed_produce_requests` alone."""
        self.failed_produce_requests = 0
        self.fetch_requests = 0
        """Once for every partition in a reply. Failed ones are in `failed_fetch_requests` alone."""
        self.failed_fetch_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: Traffic) -> None:
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class BrokerTraffic:
    """The traffic of all topics."""

    def __init__(self) -> None:
        self._topics: dict[str, Traffic] = {}
        self.elsewhere = Traffic()
        """Of deleted topics, and of requests for topics this broker does not know."""

    def of(self, topic: str) -> Traffic:
        """The topic's counts, made when it is first asked for."""
        traffic = self._topics.get(topic)
        if traffic is None:
            traffic = self._topics[topic] = Traffic()
        return traffic

    def known(self, topic: str | None) -> Traffic:
        """The counts of a topic that a request names; a name that is not held here gets none of its own."""
        return self._topics.get(topic or "", self.elsewhere)

    def forget(self, topic: str) -> None:
        """The topic was deleted."""
        traffic = self._topics.pop(topic, None)
        if traffic is not None:
            self.elsewhere.add(traffic)

    def topics(self) -> Iterator[tuple[str, Traffic]]:
        yield from list(self._topics.items())
