"""This machine's addresses and free ports."""

from __future__ import annotations

import re
import socket
from functools import cache

from headrace.services.url import ANYHOST, LOCALHOST

_LOOPBACK = re.compile(r"127(\.\d{1,3}){3}$")


def is_any(host: str | None) -> bool:
    """Whether this names no address in particular."""
    return not host or host.lower() == "localhost" or host == ANYHOST


def is_invalid_local_host(host: str | None) -> bool:
    """Whether no other machine could reach us under this name."""
    return is_any(host) or _LOOPBACK.match(host or "") is not None


def is_valid_port(port: int) -> bool:
    return 0 < port <= 65535


@cache
def local_host() -> str:
    """The address other machines reach this one under: the host name's, else the one routes start from."""
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = ""
    if not is_invalid_local_host(address):
        return address
    # Connecting a datagram socket sends nothing; it only makes the kernel choose a source address.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            return LOCALHOST
    return LOCALHOST if is_invalid_local_host(address) else address


def address_towards(host: str, port: int) -> str | None:
    """The local address a connection to `host` leaves from, or None when it cannot be reached."""
    try:
        with socket.create_connection((host, port), timeout=1) as connection:
            return str(connection.getsockname()[0])
    except OSError:
        return None


def reserve_port(host: str, first: int) -> socket.socket:
    """A bound socket on a free port, the first from `first` on; holding it keeps the port ours."""
    for port in range(max(first, 1), 65536) if first > 0 else (0,):
        probe = socket.socket()
        try:
            probe.bind((host, port))
            return probe
        except OSError:
            probe.close()
    raise OSError(f"no port from {first} on is free")
