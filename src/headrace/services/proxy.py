"""From an implementation to an invoker, and from an invoker to something that looks like the interface.

A proxy's `async def` methods are awaited; its plain ones wait for the answer, or return a future where the method
is configured with `async`. Asked for an asynchronous proxy, every method is awaited.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from headrace.services import context
from headrace.services.interface import InterfaceModel, MethodModel
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker, ServiceInvoker
from headrace.services.pool import WorkerPool
from headrace.services.url import URL

T = TypeVar("T")


class ServiceLoop(Protocol):
    """The event loop that calls are made on, from any thread; an application's `Runtime` has it."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T: ...


class ProxyFactory(ABC):
    """The two turns between objects and invokers; `proxy=<name>` chooses one."""

    @abstractmethod
    def get_invoker(
        self, ref: object, interface: InterfaceModel, url: URL, pool: Callable[[URL], WorkerPool]
    ) -> Invoker:
        """An invoker that calls `ref`."""

    @abstractmethod
    def get_proxy(self, invoker: Invoker, runtime: ServiceLoop, *, asynchronous: bool) -> Any:
        """An object with the interface's methods that calls `invoker`."""


class PythonProxyFactory(ProxyFactory):
    """Bound methods on the way in, generated ones on the way out."""

    def get_invoker(
        self, ref: object, interface: InterfaceModel, url: URL, pool: Callable[[URL], WorkerPool]
    ) -> Invoker:
        exported = (
            URL.parse(url.get_decoded("export")) if url.get("export") and url.protocol == "registry" else url
        )
        return ServiceInvoker(ref, interface, url, pool, direct=exported.get("dispatcher") == "direct")

    def get_proxy(self, invoker: Invoker, runtime: ServiceLoop, *, asynchronous: bool) -> Any:
        interface = invoker.interface
        caller = _Caller(invoker, runtime)
        methods: dict[str, Any] = {}
        for method in interface.methods.values():
            if asynchronous or method.is_async:
                methods[method.attribute] = _awaited(caller, method)
            elif invoker.url.method_bool(method.name, "async", False):
                methods[method.attribute] = _future(caller, method)
            else:
                methods[method.attribute] = _blocking(caller, method)
        name = interface.name.rpartition(".")[2]
        methods["__repr__"] = lambda self: f"<proxy of {interface.name}>"
        methods["__init__"] = lambda self: None
        bases = (interface.cls,) if interface.cls is not None else ()
        cls = type(f"{name}Proxy", bases, methods)
        cls.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
        return cls()


class _Caller:
    """Makes calls through one invoker on behalf of a proxy."""

    def __init__(self, invoker: Invoker, runtime: ServiceLoop) -> None:
        self.invoker = invoker
        self.runtime = runtime

    def prepare(
        self, method: MethodModel, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Coroutine[Any, Any, Result]:
        invocation = Invocation(
            method.name,
            method.parameter_types,
            method.bind(args, kwargs),
            dict(context.outgoing()),
            method=method,
            one_way=not self.invoker.url.method_bool(method.name, "return", True),
        )
        return self.invoker.invoke(invocation)

    def finish(self, method: MethodModel, result: Result) -> object:
        context.note_reply(result.attachments or {})
        value = result.unwrap()
        return value if method.convert_result is None else method.convert_result(value)


def _awaited(caller: _Caller, method: MethodModel) -> Any:
    async def call(self: object, *args: object, **kwargs: object) -> object:
        return caller.finish(method, await caller.runtime.run_async(caller.prepare(method, args, kwargs)))

    return _named(call, method)


def _blocking(caller: _Caller, method: MethodModel) -> Any:
    def call(self: object, *args: object, **kwargs: object) -> object:
        return caller.finish(method, caller.runtime.run(caller.prepare(method, args, kwargs)))

    return _named(call, method)


def _future(caller: _Caller, method: MethodModel) -> Any:
    async def finished(work: Coroutine[Any, Any, Result]) -> object:
        return caller.finish(method, await work)

    def call(self: object, *args: object, **kwargs: object) -> object:
        work = finished(caller.prepare(method, args, kwargs))
        return asyncio.run_coroutine_threadsafe(work, caller.runtime.loop)

    return _named(call, method)


def _named(function: Any, method: MethodModel) -> Any:
    function.__name__ = method.attribute
    function.__doc__ = method.summary
    return function
