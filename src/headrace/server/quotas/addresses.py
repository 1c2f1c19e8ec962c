"""How quickly connections may come from one address: the quota connection_creation_rate of ips.

Each address has the limit given for it, or the default, and counts for itself. What is given by a host name holds for the
addresses the name has when the quota is applied.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Iterable, Mapping

from headrace.server.cluster.image import QuotaEntity
from headrace.server.cluster.quota_changes import IP
from headrace.server.quotas.arithmetic import Rate, Window
from headrace.server.quotas.client_quotas import CONNECTION_CREATION_RATE

log = logging.getLogger(__name__)


class AddressLimits:
    def __init__(self, default: float | None = None, by_address: Mapping[str, float] | None = None) -> None:
        self.default = default
        self._by_address = by_address or {}

    def of(self, host: str) -> float | None:
        return self._by_address.get(host, self.default)

    @classmethod
    def read(cls, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> AddressLimits:
        """Looks up host names, which may take a moment. A name that is unknown now has no effect, and the log says so."""
        default: float | None = None
        by_address: dict[str, float] = {}
        for entity, values in quotas.items():
            if entity[0][0] != IP or CONNECTION_CREATION_RATE not in values:
                continue
            name, limit = entity[0][1], values[CONNECTION_CREATION_RATE]
            if name is None:
                default = limit
                continue
            addresses = addresses_of(name)
            if not addresses:
                log.warning(
                    "The connection quota of %s has no effect: the host name cannot be resolved.", name
                )
            for address in addresses:
                by_address[address] = limit
        return cls(default, by_address)


def addresses_of(name: str) -> set[str]:
    """As peers are shown; an address stands for itself, a host name is looked up. Empty when it cannot be resolved."""
    try:
        found: Iterable[str] = [str(ipaddress.ip_address(name))]
    except ValueError:
        try:
            found = [str(entry[4][0]) for entry in socket.getaddrinfo(name, None)]
        except OSError:
            return set()
    return {written for address in found for written in (address, f"::ffff:{address}")}


class AddressRates:
    """What addresses used of their limits on this broker."""

    def __init__(self, window: Window) -> None:
        self.limits = AddressLimits()
        self._window = window
        self._rates: dict[str, Rate] = {}
        self._swept = 0

    def __len__(self) -> int:
        return len(self._rates)

    def connected(self, host: str, now: float) -> float:
        """One more connection. If it is one too many, it is not counted, and this is how many seconds to keep it waiting
        before it is closed: a sample of the window at most."""
        limit = self.limits.of(host)
        if limit is None:
            return 0.0
        moment = int(now * 1000)
        rate = self._rates.get(host)
        if rate is None:
            self._sweep(moment)
            rate = self._rates[host] = Rate(self._window)
        rate.record(1, moment)
        throttle = min(rate.throttle_ms(limit, moment), self._window.sample_ms)
        if throttle:
            rate.record(-1, moment)
        return throttle / 1000

    def _sweep(self, now: int) -> None:
        if now - self._swept >= self._window.span_ms:
            self._swept = now
            self._rates = {host: rate for host, rate in self._rates.items() if not rate.spent(now)}
