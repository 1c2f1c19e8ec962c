"""Publishes what a service looks like, for consoles and for callers who have no interface.

The layout in ZooKeeper is Dubbo's: `/dubbo/metadata/<interface>/[version/][group/]<side>/<application>`, holding a
JSON description with the methods, their types and the URL's parameters. Nothing waits for a report that is away:
what could not be published is logged and tried again every `retry-period` (3,000 ms), `retry-times` (100) times.
"""

from __future__ import annotations

import asyncio
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

DEFAULT_RETRY_TIMES = 100
DEFAULT_RETRY_MS = 3_000
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
    """A place where descriptions are published."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._times = url.get_int("retry-times", DEFAULT_RETRY_TIMES)
        self._seconds = url.get_int("retry-period", DEFAULT_RETRY_MS) / 1000
        self._unpublished: dict[MetadataIdentifier, str] = {}
        self._retrying: asyncio.Task[None] | None = None

    @abstractmethod
    async def start(self) -> None:
        """Connect."""

    async def close(self) -> None:
        """Disconnect."""
        if self._retrying is not None:
            self._retrying.cancel()

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
        text = json.dumps(described)
        self._unpublished[identifier] = text  # in place of what may still wait to be published
        if not await self._try(identifier, text) and (self._retrying is None or self._retrying.done()):
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    async def _try(self, identifier: MetadataIdentifier, text: str) -> bool:
        try:
            await self.store(identifier, text)
        except Exception as error:
            logger.error("The metadata of %s could not be published: %s", identifier.interface, error)
            return False
        if self._unpublished.get(identifier) is text:
            del self._unpublished[identifier]
        return True

    async def _retry(self) -> None:
        for _ in range(self._times):
            if not self._unpublished:
                return
            await asyncio.sleep(self._seconds)
            for identifier, text in list(self._unpublished.items()):
                await self._try(identifier, text)


MetadataReportFactory = Callable[[URL], MetadataReport]


class ZooKeeperMetadataReport(MetadataReport):
    """Descriptions as lasting nodes in ZooKeeper."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._root = "/" + url.get("group", "dubbo").strip("/")
        self._zk = ZooKeeperConnection(url.add_if_absent({"check": "false"}))

    async def start(self) -> None:
        await self._zk.start()

    async def close(self) -> None:
        await super().close()
        await self._zk.close()

    async def store(self, identifier: MetadataIdentifier, text: str) -> None:
        await self._zk.store(f"{self._root}/{identifier.path}", text.encode())

    async def load(self, identifier: MetadataIdentifier) -> str | None:
        found = await self._zk.read(f"{self._root}/{identifier.path}")
        return None if found is None else found.decode()
