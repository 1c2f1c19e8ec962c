"""The thing that can be called: on the provider's side around an implementation, on the consumer's around a wire.

`Invoker.invoke` returns a Result for whatever the implementation did and raises RpcException when the call could
not be made. An invoker that never waits says so with `suspends = False` and may be run without a task of its own;
one that does nothing with a call returns the next invoker's coroutine instead of wrapping it.
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

from headrace.services.errors import RpcException
from headrace.services.interface import InterfaceModel, MethodModel
from headrace.services.invocation import Invocation, Result
from headrace.services.pool import PoolExhaustedError, WorkerPool
from headrace.services.url import URL


class Invoker(ABC):
    """Something that can be called, described by its URL."""

    suspends = True

    def __init__(self, interface: InterfaceModel, url: URL) -> None:
        self.interface = interface
        self.url = url
        self.active: Counter[str] = Counter()  # calls under way, by method; shared by all wrappers

    @abstractmethod
    async def invoke(self, invocation: Invocation) -> Result:
        """Make the call."""

    @property
    def is_available(self) -> bool:
        return True

    async def destroy(self) -> None:  # noqa: B027  most hold nothing
        """Release what the invoker holds; calls under way finish."""

    def __repr__(self) -> str:
        return f"{self.interface.name} -> {self.url}"


class WrappedInvoker(Invoker):
    """An invoker in front of another, with a URL of its own where one is given."""

    def __init__(self, inner: Invoker, url: URL | None = None) -> None:
        super().__init__(inner.interface, url or inner.url)
        self.inner = inner
        self.active = inner.active
        self.suspends = inner.suspends

    def invoke(self, invocation: Invocation) -> Coroutine[Any, Any, Result]:
        return self.inner.invoke(invocation)

    @property
    def is_available(self) -> bool:
        return self.inner.is_available

    async def destroy(self) -> None:
        await self.inner.destroy()


class ServiceInvoker(Invoker):
    """Calls an implementation's methods: `async def` on the loop, `def` in the pool or, if asked, directly."""

    def __init__(
        self,
        ref: object,
        interface: InterfaceModel,
        url: URL,
        pool: Callable[[URL], WorkerPool],
        *,
        direct: bool,
    ) -> None:
        super().__init__(interface, url)
        self._pool = pool
        self._workers: WorkerPool | None = None  # found with the first call that needs it
        self._direct = direct
        self._handlers: dict[str, tuple[MethodModel, Callable[..., Any], bool]] = {}
        for method in interface.methods.values():
            function = getattr(ref, method.attribute)
            self._handlers[method.name] = (method, function, inspect.iscoroutinefunction(function))
        self._owner = type(ref).__qualname__
        # With `direct`, plain functions run where the call arrived; one `async def` is enough to need a task.
        self.suspends = not direct or any(is_async for _, _, is_async in self._handlers.values())

    async def invoke(self, invocation: Invocation) -> Result:
        entry = self._handlers.get(invocation.method_name)
        if entry is None:
            raise self._failed(
                invocation, f'Not found method "{invocation.method_name}" in class {self._owner}.'
            )
        method, function, is_async = entry
        try:
            arguments = method.convert(invocation.arguments)
        except TypeError as error:
            raise self._failed(invocation, str(error)) from None
        try:
            if is_async:
                return Result(await function(*arguments))
            if self._direct:
                return Result(function(*arguments))
            if self._workers is None:
                self._workers = self._pool(self.url)
            return Result(await self._workers.run(copy_context(), function, arguments))
        except PoolExhaustedError:  # the call did not happen
            raise
        except Exception as error:
            return Result(None, error)
        except (SystemExit, asyncio.CancelledError) as error:
            # An exit would end the loop, and every service with it. A cancellation is the implementation's own, of
            # something it waited for, unless it is this call that is being cancelled.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            return Result(None, RuntimeError(repr(error)))

    def _failed(self, invocation: Invocation, cause: str) -> RpcException:
        return RpcException(
            f"Failed to invoke remote proxy method {invocation.method_name} to {self.url}, cause: {cause}"
        )
