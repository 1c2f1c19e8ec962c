"""What a registry holds, in readable form: services, their providers and consumers, their rules and descriptions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from headrace.services.addresses import parse_address
from headrace.services.config.complete import REGISTRY_SERVICE
from headrace.services.errors import ServicesError
from headrace.services.metadata import MetadataIdentifier
from headrace.services.registry.base import CATEGORIES
from headrace.services.runtime import Runtime
from headrace.services.url import ANY, URL


@dataclass(slots=True)
class ServiceEntry:
    """One service by its key, with everything registered under it."""

    key: str
    interface: str
    group: str
    version: str
    urls: dict[str, list[URL]] = field(default_factory=lambda: {category: [] for category in CATEGORIES})

    @property
    def protocols(self) -> list[str]:
        return sorted({url.protocol for url in self.urls["providers"]})

    @property
    def methods(self) -> list[str]:
        return sorted({method for url in self.urls["providers"] for method in url.get_list("methods")})


class Catalogue:
    """A look into one registry."""

    def __init__(self, runtime: Runtime, address: str) -> None:
        self._runtime = runtime
        self._url = parse_address(
            address, {"path": REGISTRY_SERVICE, "protocol": "zookeeper", "port": "2181"}
        )

    def services(self, interface: str = "") -> list[ServiceEntry]:
        """Every service, or those of one interface, by key."""
        return self._runtime.run(self._services(interface))

    def description(self, entry: ServiceEntry) -> dict[str, Any] | None:
        """What a provider published about the service in the same ZooKeeper, if any did."""
        return self._runtime.run(self._description(entry))

    async def _services(self, interface: str) -> list[ServiceEntry]:
        registry = await self._runtime.registry(self._url)
        entries: dict[str, ServiceEntry] = {}
        for name in [interface] if interface else await registry.services():
            everything = URL("consumer", "0.0.0.0", 0, name, {"category": ANY, "group": ANY, "version": ANY})
            for url in await registry.lookup(everything.add({"enabled": ANY})):
                entry = entries.setdefault(
                    url.service_key, ServiceEntry(url.service_key, name, url.get("group"), url.get("version"))
                )
                entry.urls.setdefault(url.get("category", "providers"), []).append(url)
        return sorted(entries.values(), key=lambda entry: entry.key)

    async def _description(self, entry: ServiceEntry) -> dict[str, Any] | None:
        if self._url.protocol != "zookeeper":
            return None
        # A report beside the registry, or Dubbo's default place.
        for place in dict.fromkeys((self._url, self._url.remove("group"))):
            report = await self._runtime.report(place)
            for url in entry.urls["providers"]:
                try:
                    found = await report.load(MetadataIdentifier.of(url, "provider"))
                    described = None if found is None else json.loads(found)
                except (ServicesError, ValueError):
                    continue
                if isinstance(described, dict):
                    return described
        return None
