"""What a protocol promises: to make an invoker reachable, and to reach one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.services.interface import InterfaceModel
from headrace.services.invoker import Invoker
from headrace.services.url import URL

if TYPE_CHECKING:
    from headrace.services.runtime import Runtime


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

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    @abstractmethod
    async def export(self, invoker: Invoker) -> Exporter:
        """Make `invoker` reachable at its URL."""

    @abstractmethod
    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        """An invoker that calls what is exported at `url`."""

    @abstractmethod
    async def destroy(self) -> None:
        """End all exports and references: refuse new calls, finish those under way, close."""


ProtocolFactory = Callable[["Runtime"], Protocol]
