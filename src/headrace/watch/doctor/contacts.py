"""The first contact with a cluster: which brokers it says it has, and which of them answer at the address they advertise.

Through `link/` alone: librdkafka keeps trying an address that is wrong, and says nothing about the others.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from headrace.link.addresses import join_address
from headrace.link.blocking import Connection
from headrace.link.errors import BrokerUnavailable
from headrace.link.opening import Offer
from headrace.link.settings import KafkaSettings
from headrace.wire.errors import KafkaError
from headrace.wire.messages.metadata import MetadataRequest

_AT_ONCE = 32
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
        return join_address(self.host, self.port)

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
    # At once: the time that each of many brokers may take would add up.
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for (host, _), reply in zip(
            brief.bootstrap, threads.map(lambda server: _ask(server, brief), brief.bootstrap), strict=True
        ):
            if isinstance(reply, str):
                trouble = trouble or reply
            else:
                answered.append(host)
                named |= reply
        known = sorted(named.items())
        brokers = tuple(threads.map(lambda each: _meet(each[0], each[1], brief), known))
    return Contacts(tuple(answered), brokers, "" if answered else trouble)


def _ask(server: tuple[str, int], settings: KafkaSettings) -> dict[int, tuple[str, int]] | str:
    """The brokers as one server names them, or why it did not answer."""
    try:
        with Connection(*server, settings) as connection:
            reply = connection.call(MetadataRequest([], False))
    except (BrokerUnavailable, KafkaError) as error:
        return str(error)
    return {each.node_id: (each.host, each.port) for each in reply.brokers}


def _meet(broker: int, address: tuple[str, int], settings: KafkaSettings) -> Contact:
    host, port = address
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
