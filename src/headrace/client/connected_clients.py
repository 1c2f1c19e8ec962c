"""The clients of a cluster, put together from what each broker says about its connections and pushed metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, str, str, str, str]


@dataclass(slots=True)
class ConnectedClient:
    """All connections, to any broker, that have the same name, principal, address and software."""

    client_id: str
    principal: str
    address: str
    software_name: str
    software_version: str
    connections: list[Mapping[str, Any]] = field(default_factory=list)
    """As the brokers describe them, with `broker`."""
    telemetry: list[Mapping[str, Any]] = field(default_factory=list)
    """One for each client instance that the brokers know, with `broker`."""

    @property
    def software(self) -> str:
        return f"{self.software_name} {self.software_version}".strip()

    @property
    def brokers(self) -> list[int]:
        return sorted({each["broker"] for each in self.connections})

    @property
    def since_ms(self) -> int | None:
        """When its oldest connection was made."""
        return min((each["since_ms"] for each in self.connections), default=None)

    @property
    def instances(self) -> list[str]:
        return sorted({each["client_instance_id"] for each in self.telemetry})

    @property
    def instances_at_work(self) -> list[str]:
        """Those that have not pushed for the last time."""
        return sorted({each["client_instance_id"] for each in self.telemetry if not each["terminated"]})

    def total(self, what: str) -> int:
        """`requests`, `bytes_in` or `bytes_out` of the connections that are open."""
        return sum(each[what] for each in self.connections)

    def as_json(self) -> dict[str, Any]:
        return {
            "client_id": self.client_id,
            "principal": self.principal,
            "address": self.address,
            "software_name": self.software_name,
            "software_version": self.software_version,
            "brokers": self.brokers,
            "since_ms": self.since_ms,
            "requests": self.total("requests"),
            "bytes_in": self.total("bytes_in"),
            "bytes_out": self.total("bytes_out"),
            "connections": self.connections,
            "telemetry": self.telemetry,
        }


def merge(documents: Iterable[Mapping[str, Any]]) -> list[ConnectedClient]:
    """Clients sorted by name. A client instance belongs to the connection that it last spoke through; one whose connection is
    gone stays a client without connections until the brokers forget it."""
    found: dict[Key, ConnectedClient] = {}
    places: dict[tuple[int, str, int], ConnectedClient] = {}
    documents = list(documents)
    for document in documents:
        for each in document["clients"]:
            client = _client(found, each, each["principal"])
            client.connections.append({"broker": document["broker"], **each})
            places[document["broker"], each["address"], each["port"]] = client
    for document in documents:
        for each in document["telemetry"]:
            owner = places.get((document["broker"], each["address"], each["port"]))
            if owner is None or owner.client_id != each["client_id"]:
                owner = _alike(found, each) or _client(found, each, "")
            owner.telemetry.append({"broker": document["broker"], **each})
    return [found[key] for key in sorted(found)]


def _client(found: dict[Key, ConnectedClient], each: Mapping[str, Any], principal: str) -> ConnectedClient:
    key = (
        each["client_id"],
        principal,
        each["address"],
        each["software_name"],
        each["software_version"],
    )
    return found.setdefault(key, ConnectedClient(*key))


def _alike(found: Mapping[Key, ConnectedClient], each: Mapping[str, Any]) -> ConnectedClient | None:
    """The client of the same name, address and software, if there is one only."""
    alike = [
        client
        for client in found.values()
        if (client.client_id, client.address, client.software_name, client.software_version)
        == (each["client_id"], each["address"], each["software_name"], each["software_version"])
    ]
    return alike[0] if len(alike) == 1 else None
