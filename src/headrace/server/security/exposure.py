"""Which listeners anyone can use: reachable from other machines, and nobody has to say who they are."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from headrace.link.addresses import join_address
from headrace.server.config.broker import BrokerConfig


def exposure(config: BrokerConfig, hosts: Mapping[str, str] | None = None) -> str:
    """What to add to the line that says a broker is ready; empty when there is nothing to say. `hosts` are the addresses actually
    bound, by listener."""
    found = [
        listener.name
        for listener in config.listeners
        if not listener.authenticated
        and not (
            listener.encrypted and config.for_listener(listener.name).string("ssl.client.auth") == "required"
        )
        and not _loopback((hosts or {}).get(listener.name, listener.host))
    ]
    if not found:
        return ""
    which = f"listener {found[0]} is" if len(found) == 1 else f"listeners {' and '.join(found)} are"
    return (
        f"; {which} open to everyone who can reach this machine, without authentication: see docs/security.md"
    )


def metrics_line(address: tuple[str, int] | None) -> str:
    """What to add to that line about the metrics listener, which never asks who somebody is."""
    if address is None:
        return ""
    return f"; metrics at http://{join_address(*address)}/metrics{openness(address[0])}"


def openness(host: str) -> str:
    return "" if _loopback(host) else ", open to everyone who can reach this machine"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
