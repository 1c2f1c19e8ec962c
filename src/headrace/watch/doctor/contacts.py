"""The first contact with a cluster: which brokers it says it has, and which of them answer at the address they advertise.

Through `link/` alone: librdkafka keeps trying an address that is wrong, and says nothing about the others.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.link.blocking import Connection
from headrace.link.errors import BrokerUnavailable
from headrace.link.opening import Offer
from headrace.link.settings import KafkaSettings
from headrace.wire.errors import KafkaError
from headrace.wire.messages.metadata import MetadataRequest

_PATIENCE = 5.0
"""Seconds for one broker to answer."""


@dataclass(frozen=True, slots=True)
class Contact:
    """One broker, as metadata names it."""

    broker: int
    host: str
    port: int
    offer: Offer | None
    """What it serves; None when it did not answer."""
    trouble: str = ""
    """Why it did not answer."""

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        return is_this_machine(self.host)


@dataclass(frozen=True, slots=True)
class Contacts:
    servers: tuple[str, ...]
    """The bootstrap servers that answered, as host names."""
    brokers: tuple[Contact, ...]
    trouble: str = ""
    """Why no bootstrap server answered."""

    @property
    def reached(self) -> list[Contact]:
        return [each for each in self.brokers if each.offer is not None]


def contact(settings: KafkaSettings) -> Contacts:
    """Ask the bootstrap servers for the brokers, then each broker at the address it advertises."""
    brief = replace(settings, request_timeout=min(settings.request_timeout, _PATIENCE))
    named: dict[int, tuple[str, int]] = {}
    answered, trouble = [], ""
    for host, port in brief.bootstrap:
        try:
            with Connection(host, port, brief) as connection:
                reply = connection.call(MetadataRequest([], False))
        except (BrokerUnavailable, KafkaError) as error:
            trouble = trouble or str(error)
            continue
        answered.append(host)
        named |= {each.node_id: (each.host, each.port) for each in reply.brokers}
    brokers = tuple(_meet(broker, *address, brief) for broker, address in sorted(named.items()))
    return Contacts(tuple(answered), brokers, "" if answered else trouble)


def _meet(broker: int, host: str, port: int, settings: KafkaSettings) -> Contact:
    try:
        with Connection(host, port, settings) as connection:
            return Contact(broker, host, port, connection.offer)
    except (BrokerUnavailable, KafkaError) as error:
        return Contact(broker, host, port, None, str(error))


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_this_machine(host: str) -> bool:
    """Whether an address or a name stands for this machine: a socket can be bound to it."""
    for family, address in _addresses(host):
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            try:
                trial.bind((address, 0))
            except OSError:
                continue
            return True
    return False


def _addresses(host: str) -> Sequence[tuple[socket.AddressFamily, str]]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return [(family, str(address[0])) for family, _, _, _, address in found]
