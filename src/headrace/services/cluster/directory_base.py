"""Where a cluster finds the providers it may call, and what makes one invoker of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from headrace.services.interface import InterfaceModel
from headrace.services.invocation import Invocation
from headrace.services.invoker import Invoker
from headrace.services.url import URL


class Directory(ABC):
    """The current providers of one service."""

    def __init__(self, interface: InterfaceModel, url: URL) -> None:
        self.interface = interface
        self.url = url

    @abstractmethod
    def candidates(self, invocation: Invocation) -> Sequence[Invoker]:
        """Who may get this call."""

    @property
    @abstractmethod
    def is_available(self) -> bool: ...

    @abstractmethod
    async def destroy(self) -> None: ...


class StaticDirectory(Directory):
    """Providers that were named and do not change."""

    def __init__(self, interface: InterfaceModel, url: URL, invokers: Sequence[Invoker]) -> None:
        super().__init__(interface, url)
        self._invokers = tuple(invokers)

    def candidates(self, invocation: Invocation) -> Sequence[Invoker]:
        return self._invokers

    @property
    def is_available(self) -> bool:
        return any(invoker.is_available for invoker in self._invokers)

    async def destroy(self) -> None:
        for invoker in self._invokers:
            await invoker.destroy()


ClusterFactory = Callable[[Directory], Invoker]
