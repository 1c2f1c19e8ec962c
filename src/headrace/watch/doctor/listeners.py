"""Listeners as a broker's settings give them, and who can use which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.link.addresses import join_address
from headrace.watch.doctor.contacts import is_loopback
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, listed, warning
from headrace.watch.doctor.scene import Scene

_LISTENER = re.compile(r"(?P<name>[^:/,\s]+)://(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:/\[\],]*)):(?P<port>\d+)")


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    host: str
    """Empty for every interface."""
    port: int
    protocol: str

    @property
    def is_encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    @property
    def address(self) -> str:
        return join_address(self.host, self.port)

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def read(text: str, protocols: str) -> list[Listener]:
    """Those of `listeners` or `advertised.listeners`; what cannot be read is left out, since a broker runs with it."""
    by_name = {
        name.strip().upper(): protocol.strip().upper()
        for name, _, protocol in (part.rpartition(":") for part in protocols.split(","))
    }
    return [
        Listener(
            match["name"],
            match["six"] or match["host"],
            int(match["port"]),
            by_name.get(match["name"].upper(), match["name"].upper()),
        )
        for match in _LISTENER.finditer(text)
    ]


def bound(settings: Mapping[str, str]) -> list[Listener]:
    """What the broker listens on, without a KRaft controller's listeners."""
    controllers = {name.strip().upper() for name in settings.get("controller.listener.names", "").split(",")}
    found = read(settings.get("listeners", ""), settings.get("listener.security.protocol.map", ""))
    return [each for each in found if each.name.upper() not in controllers]


def advertised(settings: Mapping[str, str]) -> list[Listener]:
    protocols = settings.get("listener.security.protocol.map", "")
    return read(settings.get("advertised.listeners", ""), protocols)


def asks_who(listener: Listener, settings: Mapping[str, str]) -> bool:
    """Whether a client has to say who it is."""
    own = settings.get(f"listener.name.{listener.name.lower()}.ssl.client.auth")
    certificate = (own or settings.get("ssl.client.auth", "")).lower() == "required"
    return listener.protocol.startswith("SASL_") or (listener.is_encrypted and certificate)


def _open(scene: Scene) -> Iterator[Finding]:
    found: dict[str, list[str]] = {}
    readable: dict[str, list[str]] = {}
    for place, settings in scene.all_broker_settings.items():
        for each in bound(settings):
            if each.is_local:
                continue
            if not asks_who(each, settings):
                found.setdefault(str(each), []).append(place)
            elif not each.is_encrypted:
                readable.setdefault(str(each), []).append(place)
    if found:
        places = sorted({place for which in found.values() for place in which})
        yield warning(
            f"Everyone who can reach {listed(places)} may read and write without a login: {listed(sorted(found))}.",
            "Make it a SASL_SSL listener, or SSL with ssl.client.auth=required ('headrace init' writes the settings), "
            "or bind it to 127.0.0.1.",
            sorted(found),
        )
    if readable:
        yield warning(
            f"Logins and records cross the network unencrypted: {listed(sorted(readable))}.",
            "Make it a SASL_SSL listener; docs/security.md has the steps.",
            sorted(readable),
        )


OPEN_LISTENERS = Check(
    "open-listeners",
    Severity.WARNING,
    "listeners beyond loopback that ask for no login, or do not encrypt one",
    Needs.SETTINGS,
    _open,
)
