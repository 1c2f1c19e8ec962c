"""What a protocol promises: to make an invoker reachable, and to reach one."""

from __future__ import annotations

import asyncio
import socket
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple

from headrace.services.interface import InterfaceModel
from headrace.services.invoker import Invoker
from headrace.services.registry.base import Registry
from headrace.services.url import URL


class ProtocolRuntime(typing.Protocol):
    """What a protocol may ask of the runtime it belongs to."""

    reserved: dict[int, socket.socket]

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    @property
    def shutdown_wait_ms(self) -> int: ...

    def later(
        self, seconds: float, action: Callable[[], Coroutine[Any, Any, None]]
    ) -> asyncio.Task[None]: ...

    def protocol(self, name: str) -> Protocol: ...

    async def registry(self, url: URL) -> Registry: ...

    async def export(self, invoker: Invoker) -> Exporter: ...

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker: ...


class OpenConnections(NamedTuple):
    """How many connections are open: at an address of ours (`provider`) or to somebody else's (`consumer`)."""

    protocol: str
    side: str
    address: str
    number: int


class Exporter(ABC):
    """One export; ending it makes the service unreachable."""

    def __init__(self, invoker: Invoker) -> None:
        self.invoker = invoker

    @abstractmethod
    async def unexport(self) -> None:
        """End the export; does nothing the second time."""


class Protocol(ABC):
    """One way for consumers to reach providers, once per application."""

    name = ""
    default_port = 0
    keeps_classes = True  # values arrive with their classes, so generic callers prefer it

    def __init__(self, runtime: ProtocolRuntime) -> None:
        self.runtime = runtime

    @abstractmethod
    async def export(self, invoker: Invoker) -> Exporter:
        """Make `invoker` reachable at its URL."""

    @abstractmethod
    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        """An invoker that calls what is exported at `url`."""

    def connections(self) -> Iterable[OpenConnections]:
        """The open connections, asked for from any thread; a protocol without any of its own has none."""
        return ()

    @abstractmethod
    async def destroy(self) -> None:
        """End all exports and references: refuse new calls, finish those under way, close."""


ProtocolFactory = Callable[[ProtocolRuntime], Protocol]
