"""Admitting connections: limits on the number of connections and on the pace at which they open, as Kafka has them.

The listener that brokers use among themselves is exempt from the broker's own limits when there are others beside it: clients
must not keep brokers apart. Limits given for a listener by name apply to that one too.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import INT_MAX, ConfigError
from headrace.server.config.ip_overrides import parse_overrides
from headrace.server.quotas.addresses import AddressRates


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """The limits of one listener."""

    max_connections: int = INT_MAX
    max_creation_rate: int = INT_MAX
    exempt: bool = False
    """The broker's own limits do not count here."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of a broker, and of each of its listeners."""

    max_connections: int = INT_MAX
    max_connections_per_ip: int = INT_MAX
    overrides: Mapping[str, int] = field(default_factory=dict)
    """Of max_connections_per_ip, by address."""
    max_creation_rate: int = INT_MAX
    most_waiting: int = 1024
    """Connections that may wait for their turn when too many open at once."""
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)

    @classmethod
    def of(cls, config: BrokerConfig) -> ConnectionLimits:
        """Host names are looked up here, which may take a moment."""
        names = [listener.name for listener in config.listeners]
        return cls(
            max_connections=config.integer("max.connections"),
            max_connections_per_ip=config.integer("max.connections.per.ip"),
            overrides=_by_address(config.string("max.connections.per.ip.overrides") or ""),
            max_creation_rate=config.integer("max.connection.creation.rate"),
            most_waiting=config.integer("socket.listen.backlog.size"),
            listeners={
                name: ListenerLimits(
                    config.listener_integer(name, "max.connections", INT_MAX),
                    config.listener_integer(name, "max.connection.creation.rate", INT_MAX),
                    exempt=len(names) > 1 and name == config.inter_broker_listener,
                )
                for name in names
            },
        )


def _by_address(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for host, count in parse_overrides(text).items():
        try:
            addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
        except OSError:
            raise ConfigError(
                f"max.connections.per.ip.overrides: the host name {host} cannot be resolved; give its address."
            ) from None
        for address in addresses:
            found[address] = found[f"::ffff:{address}"] = count
    return found


class AdmissionPace:
    """Allows so many events per second, with bursts of one second's worth; later ones have to wait."""

    def __init__(self) -> None:
        self._next = float("-inf")
        """When the next one would be due if they were evenly spaced."""

    def wait(self, rate: int, now: float) -> float:
        """How long one more event would have to wait now."""
        return max(0.0, self._next - now - (1 - 1 / rate))

    def count(self, rate: int, now: float) -> None:
        self._next = max(self._next, now) + 1 / rate


class Admission:
    """Counts the connections of one broker. Call `left` for every connection that ends, refused or not."""

    def __init__(self, limits: ConnectionLimits, addresses: AddressRates) -> None:
        self.limits = limits
        self.addresses = addresses
        """The quotas of ips."""
        self._total = 0
        self.accepted: Counter[str] = Counter()
        """Connections so far, by listener, refused ones included."""
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._pace = AdmissionPace()
        self._listener_paces: dict[str, AdmissionPace] = {}

    def came(self, listener: str, host: str) -> str | None:
        """Count a new connection; returns the reason if it must be closed."""
        complaint = self._complaint(listener, host)
        self._total += 1
        self._by_host[host] += 1
        self._by_listener[listener] += 1
        self.accepted[listener] += 1
        return complaint

    def _complaint(self, listener: str, host: str) -> str | None:
        limits = self.limits
        own = limits.listeners.get(listener, ListenerLimits())
        if self._by_listener[listener] >= own.max_connections:
            return f"listener.name.{listener.lower()}.max.connections={own.max_connections} reached"
        if self._total >= limits.max_connections and not own.exempt:
            return f"max.connections={limits.max_connections} reached"
        override = limits.overrides.get(host)
        if override is not None and self._by_host[host] >= override:
            return f"max.connections.per.ip.overrides={host}:{override} reached"
        if override is None and self._by_host[host] >= limits.max_connections_per_ip:
            return f"max.connections.per.ip={limits.max_connections_per_ip} reached"
        return None

    def left(self, listener: str, host: str) -> None:
        self._total -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def open_by_listener(self) -> dict[str, int]:
        return dict(self._by_listener)

    def too_soon(self, listener: str, host: str, now: float) -> float:
        """How many seconds to keep a connection waiting that exceeds the quota of its address, before it is closed."""
        own = self.limits.listeners.get(listener, ListenerLimits())
        return 0.0 if own.exempt else self.addresses.connected(host, now)

    def turn(self, listener: str, now: float) -> float | None:
        """How many seconds a new connection must wait before it is served; None when too many wait already."""
        limits = self.limits
        own = limits.listeners.get(listener, ListenerLimits())
        paced = []
        if own.max_creation_rate != INT_MAX:
            paced.append((self._listener_paces.setdefault(listener, AdmissionPace()), own.max_creation_rate))
        if limits.max_creation_rate != INT_MAX and not own.exempt:
            paced.append((self._pace, limits.max_creation_rate))
        if any(rate == 0 or pace.wait(rate, now) * rate >= limits.most_waiting for pace, rate in paced):
            return None
        wait = max((pace.wait(rate, now) for pace, rate in paced), default=0.0)
        for pace, rate in paced:
            pace.count(rate, now)
        return wait
