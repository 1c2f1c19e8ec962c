"""The kinds of rules and what can be said in each: one dataclass a kind, whose fields are what alerts.toml takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from headrace.client.lag_states import LagState
from headrace.watch.alerts import values
from headrace.watch.alerts.values import EVERYTHING, Patterns, Reader


def _by(reader: Reader) -> dict[str, Reader]:
    """Metadata of a field: how its value is read."""
    return {"reader": reader}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    kind: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfGroups(Condition):
    groups: Patterns = field(default=EVERYTHING, metadata=_by(values.patterns))
    topics: Patterns = field(default=EVERYTHING, metadata=_by(values.patterns))


@dataclass(frozen=True, slots=True, kw_only=True)
class LagStates(OfGroups):
    kind: ClassVar[str] = "lag-state"
    states: tuple[str, ...] = field(default=("stalled", "gone"), metadata=_by(values.several_of(*LagState)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSeconds(OfGroups):
    kind: ClassVar[str] = "lag-seconds"
    above: float = field(metadata=_by(values.some_time))


@dataclass(frozen=True, slots=True, kw_only=True)
class LagRecords(OfGroups):
    kind: ClassVar[str] = "lag-records"
    above: int = field(metadata=_by(values.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class LagForecast(OfGroups):
    kind: ClassVar[str] = "lag-forecast"
    within: float = field(default=6 * 3600.0, metadata=_by(values.some_time))


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTopics(Condition):
    topics: Patterns = field(default=EVERYTHING, metadata=_by(values.patterns))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderReplicated(OfTopics):
    kind: ClassVar[str] = "under-replicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderMinIsr(OfTopics):
    kind: ClassVar[str] = "under-min-isr"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflinePartitions(OfTopics):
    kind: ClassVar[str] = "offline-partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMissing(Condition):
    kind: ClassVar[str] = "broker-missing"
    expected: tuple[int, ...] = field(default=(), metadata=_by(values.brokers))
    """Brokers that must be there, beside those that have replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoController(Condition):
    kind: ClassVar[str] = "no-controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters(Condition):
    kind: ClassVar[str] = "dead-letters"
    topics: Patterns = field(default=Patterns(("*.dlq",)), metadata=_by(values.patterns))
    above: int = field(default=0, metadata=_by(values.count))
    within: float = field(default=600.0, metadata=_by(values.some_time))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFilling(Condition):
    kind: ClassVar[str] = "disk-filling"
    within: float = field(default=24 * 3600.0, metadata=_by(values.some_time))
    window: float = field(default=3600.0, metadata=_by(values.some_time))
    min_free: float = field(default=0.05, metadata=_by(values.percent))


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateExpiry(Condition):
    kind: ClassVar[str] = "certificate-expiry"
    within: float = field(default=14 * 86_400.0, metadata=_by(values.some_time))
    listeners: tuple[str, ...] = field(default=(), metadata=_by(values.addresses))
    """TLS listeners to look at beside those that the brokers advertise to this client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAway(Condition):
    kind: ClassVar[str] = "cluster-away"


KINDS: Mapping[str, type[Condition]] = {
    each.kind: each
    for each in (
        LagStates,
        LagSeconds,
        LagRecords,
        LagForecast,
        UnderReplicated,
        UnderMinIsr,
        OfflinePartitions,
        BrokerMissing,
        NoController,
        DeadLetters,
        DiskFilling,
        CertificateExpiry,
        ClusterAway,
    )
}
