"""Listener lists, `NAME://host:port,…`, and the security protocol of each name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.link.addresses import join_address
from headrace.server.config.definition import ConfigError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_LISTENER = re.compile(
    r"(?P<name>[^:/,]+)://(?:\[(?P<six>[0-9a-zA-Z:.%-]+)\]|(?P<host>[^:/\[\],]*)):(?P<port>-?[0-9]+)"
)


@dataclass(frozen=True, slots=True)
class Listener:
    """One address. An empty host means every interface when bound; port 0 means any free port."""

    name: str
    host: str
    port: int
    protocol: str

    @property
    def encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def authenticated(self) -> bool:
        """Whether clients have to log in with SASL."""
        return self.protocol.startswith("SASL_")

    def __str__(self) -> str:
        return f"{self.name}://{join_address(self.host, self.port)}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,…` as a mapping, names in capitals."""
    result: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, separator, protocol = part.rpartition(":")
        if not separator or protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {part!r} is not NAME:PROTOCOL "
                f"with a protocol of {', '.join(PROTOCOLS)}."
            )
        result[name.strip().upper()] = protocol.strip().upper()
    return result


def parse_listeners(setting: str, text: str, protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """The addresses in `text`; error messages name `setting`."""
    listeners: list[Listener] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _LISTENER.fullmatch(part)
        if match is None:
            raise ConfigError(f"{setting}: {part!r} is not NAME://host:port (IPv6 hosts go in brackets).")
        name = match["name"].upper()
        port = int(match["port"])
        if not 0 <= port <= 65535:
            raise ConfigError(f"{setting}: the port in {part!r} is not between 0 and 65535.")
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"{setting}: no security protocol is defined for listener {name}; "
                "add it to listener.security.protocol.map."
            )
        listeners.append(Listener(name, match["six"] or match["host"], port, protocol))
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ConfigError(f"{setting}: each listener must have a different name, listeners: {text}")
    return tuple(listeners)


_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9a-zA-Z:.%-]+)\]|(?P<host>[^:/\[\],\s]*)):(?P<port>[0-9]+)")


def parse_address(setting: str, text: str) -> tuple[str, int]:
    """`host:port`, for a port of the broker that clients of Kafka have no use for."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(f"{setting}: {text!r} is not host:port (IPv6 hosts go in brackets).")
    return match["six"] or match["host"], int(match["port"])


def check_distinct_ports(setting: str, listeners: tuple[Listener, ...]) -> None:
    """Two listeners may share a port only as the IPv4 and IPv6 side of one address."""
    seen: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port != 0:
            seen.setdefault(listener.port, []).append(listener)
    for port, sharing in seen.items():
        families = {":" in listener.host for listener in sharing}
        if len(sharing) > 2 or (len(sharing) == 2 and len(families) == 1):
            raise ConfigError(
                f"{setting}: each listener must have a different port, but {port} is used twice."
            )
