"""Calls within the process: the same chain as any other export, without a wire.

An in-process export is never registered, and a reference prefers it to the network unless it says otherwise.
"""

from __future__ import annotations

from headrace.services.errors import RpcException
from headrace.services.interface import InterfaceModel
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter, Protocol, ProtocolRuntime
from headrace.services.url import ANY, LOCALHOST, URL


class InjvmProtocol(Protocol):
    """Exports and references by service key, in one table."""

    name = "injvm"

    def __init__(self, runtime: ProtocolRuntime) -> None:
        super().__init__(runtime)
        self._exporters: dict[str, InjvmExporter] = {}

    async def export(self, invoker: Invoker) -> Exporter:
        key = invoker.url.service_key
        exporter = InjvmExporter(invoker, key, self._exporters)
        self._exporters[key] = exporter
        return exporter

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        return InjvmInvoker(interface, url, self)

    def find(self, url: URL) -> Invoker | None:
        """The local invoker that answers `url`; a generic one only answers remote calls."""
        exporter = self._exporters.get(url.service_key)
        if exporter is None and ANY in url.service_key:
            exporter = next((e for e in self._exporters.values() if _matches(url, e.invoker.url)), None)
        if exporter is None or exporter.invoker.url.get_bool("generic", False):
            return None
        return exporter.invoker

    def is_wanted(self, url: URL) -> bool:
        """Whether a reference with these parameters should stay in the process."""
        scope = url.get("scope").lower()
        if scope == "local" or url.get_bool("injvm", False):
            return True
        if scope == "remote" or url.get_bool("generic", False):
            return False
        return self.find(url) is not None

    async def destroy(self) -> None:
        self._exporters.clear()


def _matches(pattern: URL, value: URL) -> bool:
    return pattern.interface == value.interface and all(
        pattern.get(key) in (ANY, value.get(key)) for key in ("group", "version")
    )


class InjvmExporter(Exporter):
    """One entry of the table."""

    def __init__(self, invoker: Invoker, key: str, table: dict[str, InjvmExporter]) -> None:
        super().__init__(invoker)
        self._key = key
        self._table = table

    async def unexport(self) -> None:
        if self._table.get(self._key) is self:
            del self._table[self._key]


class InjvmInvoker(Invoker):
    """Looks the export up at each call, so that it may come later than the reference."""

    def __init__(self, interface: InterfaceModel, url: URL, protocol: InjvmProtocol) -> None:
        super().__init__(interface, url)
        self._protocol = protocol

    @property
    def is_available(self) -> bool:
        return self._protocol.find(self.url) is not None

    async def invoke(self, invocation: Invocation) -> Result:
        target = self._protocol.find(self.url)
        if target is None:
            raise RpcException(f"Service [{self.url.service_key}] not found.")
        invocation.remote_address = invocation.local_address = f"{LOCALHOST}:0"
        invocation.attachments.setdefault("token", target.url.get("token"))
        return await target.invoke(invocation)
