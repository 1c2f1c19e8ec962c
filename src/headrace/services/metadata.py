"""Publishes what a service looks like, for consoles and for callers who have no interface.

The layout in ZooKeeper is Dubbo's: `/dubbo/metadata/<interface>/[version/][group/]<side>/<application>`, holding a
JSON description with the methods, their types and the URL's parameters.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from headrace.services.hessian2 import DEFAULT_CLASSES
from headrace.services.interface import InterfaceModel
from headrace.services.javatypes import java_type
from headrace.services.registry.zk import ZooKeeperConnection
from headrace.services.url import URL, encode

logger = logging.getLogger("headrace.services")

_OWN = ("pid", "timestamp", "bind.ip", "bind.port")


def describe_service(interface: InterfaceModel, parameters: dict[str, str]) -> dict[str, Any]:
    """The description of a service, in the words of Dubbo's FullServiceDefinition."""
    types: dict[str, dict[str, Any]] = {}
    methods = []
    for method in interface.methods.values():
        names = [parameter.java_type for parameter in method.parameters]
        methods.append({"name": method.name, "parameterTypes": names, "returnType": method.return_type})
        for name in [*names, method.return_type]:
            _describe_type(name, types)
    module = interface.cls.__module__ if interface.cls is not None else ""
    return {
        "canonicalName": interface.name,
        "codeSource": module,
        "methods": methods,
        "types": list(types.values()),
        "parameters": parameters,
    }


def _describe_type(name: str, types: dict[str, dict[str, Any]]) -> None:
    if name in types:
        return
    described: dict[str, Any] = {"type": name}
    types[name] = described
    known = DEFAULT_CLASSES.by_name.get(name)
    if known is None:
        return
    if known.kind == "enum":
        described["enum"] = list(known.type.__members__)  # type: ignore[attr-defined]
        return
    described["properties"] = {}
    for field in known.fields:
        kind = java_type(field.annotation)
        described["properties"][field.java_name] = {"type": kind}
        _describe_type(kind, types)


@dataclasses.dataclass(frozen=True, slots=True)
class MetadataIdentifier:
    """Where a description is kept."""

    interface: str
    version: str
    group: str
    side: str
    application: str

    @classmethod
    def of(cls, url: URL, side: str) -> MetadataIdentifier:
        return cls(url.interface, url.get("version"), url.get("group"), side, url.get("application"))

    @property
    def path(self) -> str:
        parts = ["metadata", encode(self.interface), self.version, self.group, self.side, self.application]
        return "/".join(part for part in parts if part)


class MetadataReport(ABC):
    """A place where descriptions are published. A failure to publish is logged and stops nothing."""

    def __init__(self, url: URL) -> None:
        self.url = url

    @abstractmethod
    async def start(self) -> None:
        """Connect."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""

    @abstractmethod
    async def store(self, identifier: MetadataIdentifier, text: str) -> None: ...

    @abstractmethod
    async def load(self, identifier: MetadataIdentifier) -> str | None: ...

    async def publish_provider(self, url: URL, interface: InterfaceModel) -> None:
        described = describe_service(interface, dict(url.remove(*_OWN).parameters))
        await self._publish(MetadataIdentifier.of(url, "provider"), described)

    async def publish_consumer(self, url: URL) -> None:
        await self._publish(MetadataIdentifier.of(url, "consumer"), dict(url.remove(*_OWN).parameters))

    async def _publish(self, identifier: MetadataIdentifier, described: dict[str, Any]) -> None:
        try:
            await self.store(identifier, json.dumps(described))
        except Exception as error:
            logger.error("The metadata of %s could not be published: %s", identifier.interface, error)


MetadataReportFactory = Callable[[URL], MetadataReport]


class ZooKeeperMetadataReport(MetadataReport):
    """Descriptions as lasting nodes in ZooKeeper."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._root = "/" + url.get("group", "dubbo").strip("/")
        self._zk = ZooKeeperConnection(url)

    async def start(self) -> None:
        await self._zk.start()

    async def close(self) -> None:
        await self._zk.close()

    async def store(self, identifier: MetadataIdentifier, text: str) -> None:
        await self._zk.store(f"{self._root}/{identifier.path}", text.encode())

    async def load(self, identifier: MetadataIdentifier) -> str | None:
        found = await self._zk.read(f"{self._root}/{identifier.path}")
        return None if found is None else found.decode()
