"""What a cluster is doing, as `activity_meter` finds it: figures of its brokers, topics, groups and clients.

Rates are per second. A figure that nobody could tell is None.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.client.lag import GroupLag


@dataclass(slots=True)
class BrokerActivity:
    broker: int
    address: str
    controller: bool
    leaders: int = 0
    replicas: int = 0
    records_in: float | None = None
    bytes_in: float | None = None
    bytes_out: float | None = None
    size: int | None = None
    connections: int | None = None
    requests: float | None = None


@dataclass(slots=True)
class TopicActivity:
    topic: str
    internal: bool
    partitions: int
    offline: int
    """Partitions without a leader."""
    under_replicated: int
    records_in: float | None = None
    records_out: float | None = None
    """Records that groups commit."""
    bytes_in: float | None = None
    bytes_out: float | None = None
    size: int | None = None
    lag: int | None = None
    """Of all groups together; None when no group reads it."""


@dataclass(slots=True)
class ClientActivity:
    """A client with its connections, or a member of a group where brokers do not tell about connections."""

    client_id: str
    principal: str | None
    address: str
    software: str | None
    connections: int | None = None
    requests: float | None = None
    bytes_in: float | None = None
    bytes_out: float | None = None
    groups: tuple[str, ...] = ()
    partitions: int | None = None
    """Assigned to it in these groups."""
    records_out: float | None = None
    """Of these partitions, as far as it commits."""


@dataclass(slots=True)
class Activity:
    at: float
    seconds: float | None
    """Since the look before; None for the first one, which has no rates."""
    brokers: list[BrokerActivity] = field(default_factory=list)
    topics: list[TopicActivity] = field(default_factory=list)
    groups: list[GroupLag] = field(default_factory=list)
    clients: list[ClientActivity] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What could not be had, in sentences."""

    def as_json(self) -> dict[str, Any]:
        return {
            "at": round(self.at, 3),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "brokers": [asdict(each) for each in self.brokers],
            "topics": [asdict(each) for each in self.topics],
            "groups": [each.as_json() for each in self.groups],
            "clients": [asdict(each) for each in self.clients],
            "problems": self.problems,
        }
