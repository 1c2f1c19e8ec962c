"""Which metrics a client is asked for: the subscriptions in the cluster's metadata that match it, put together as Kafka does."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crc32c import crc32c

from headrace.server.cluster.ids import format_id
from headrace.server.cluster.image import ConfigResource, ResourceType
from headrace.server.config.client_metrics import (
    CLIENT_METRICS_SETTINGS,
    DEFAULT_INTERVAL_MS,
    Patterns,
    compiled,
    patterns_of,
)

ALL = "*"


class ClientIdentity(NamedTuple):
    """What a subscription can tell clients apart by."""

    client_id: str
    software_name: str
    software_version: str
    address: str
    port: int

    def attributes(self, instance: uuid.UUID) -> Mapping[str, str]:
        return {
            "client_instance_id": format_id(instance),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": str(self.port),
        }


@dataclass(frozen=True, slots=True)
class Subscription:
    """One resource of type CLIENT_METRICS."""

    metrics: frozenset[str]
    interval_ms: int
    match: Patterns

    def wants(self, attributes: Mapping[str, str]) -> bool:
        return all(compiled(pattern).fullmatch(attributes[name]) for name, pattern in self.match)


class Asked(NamedTuple):
    """What one client is asked for."""

    metrics: tuple[str, ...]
    interval_ms: int
    id: int


def read_subscriptions(configs: Mapping[ConfigResource, Mapping[str, str]]) -> list[Subscription]:
    return [
        _read(settings)
        for resource, settings in sorted(configs.items())
        if resource.type is ResourceType.CLIENT_METRICS
    ]


def _read(settings: Mapping[str, str]) -> Subscription:
    values = {
        name: setting.parse(settings[name]) if name in settings else setting.default
        for name, setting in CLIENT_METRICS_SETTINGS.items()
    }
    metrics, interval_ms, match = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple)
    assert isinstance(interval_ms, int)
    assert isinstance(match, tuple)
    return Subscription(frozenset(metrics), interval_ms, patterns_of(match) if match else ())


def ask(subscriptions: Iterable[Subscription], identity: ClientIdentity, instance: uuid.UUID) -> Asked:
    """All that any matching subscription asks for, as often as the most frequent one."""
    attributes = identity.attributes(instance)
    matching = [each for each in subscriptions if each.wants(attributes)]
    metrics = sorted(frozenset[str]().union(*(each.metrics for each in matching)))
    if ALL in metrics:
        metrics = [ALL]
    interval_ms = min([DEFAULT_INTERVAL_MS, *(each.interval_ms for each in matching)])
    return Asked(tuple(metrics), interval_ms, _subscription_id(metrics, interval_ms, instance))


def _subscription_id(metrics: list[str], interval_ms: int, instance: uuid.UUID) -> int:
    """As KIP-714 defines it: the CRC-32C of what is asked for, XOR the hash of the client instance id."""
    high, low = instance.int >> 64, instance.int & 0xFFFF_FFFF_FFFF_FFFF
    folded = high ^ low
    mixed = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode()) ^ (folded >> 32) ^ (folded & 0xFFFF_FFFF)
    return mixed - (1 << 32) if mixed >= 1 << 31 else mixed
