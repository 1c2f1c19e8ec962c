"""Limits on calls: at once in a provider (`executes`), per time (`tps`), at once in a consumer (`actives`)."""

from __future__ import annotations

import asyncio
import time

from headrace.services.errors import RpcCode, RpcException
from headrace.services.filters.base import Filter
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker


class ExecuteLimitFilter(Filter):
    """Refuses a call when `executes` calls of its method are running."""

    GROUPS = frozenset({"provider"})
    KEY = "executes"
    SUSPENDS = False

    async def invoke(self, invocation: Invocation) -> Result:
        name = invocation.method_name
        limit = self.url.method_int(name, "executes", 0)
        if 0 < limit <= self.active[name]:
            raise RpcException(
                f"Failed to invoke method {name} in provider {self.url}, cause: The service using threads "
                f'greater than <dubbo:service executes="{limit}" /> limited.',
                RpcCode.LIMIT_EXCEEDED,
            )
        self.active[name] += 1
        try:
            return await self.inner.invoke(invocation)
        finally:
            self.active[name] -= 1
            if not self.active[name]:  # names come from the wire: keep only those of calls under way
                del self.active[name]


class TpsLimitFilter(Filter):
    """Refuses calls beyond `tps` in each `tps.interval` (60,000 ms)."""

    GROUPS = frozenset({"provider"})
    KEY = "tps"
    SUSPENDS = False

    def __init__(self, inner: Invoker) -> None:
        super().__init__(inner)
        self._rate = self.url.get_int("tps", -1)
        self._interval = self.url.get_int("tps.interval", 60_000) / 1000
        self._left = self._rate
        self._since = time.monotonic()

    async def invoke(self, invocation: Invocation) -> Result:
        if self._rate > 0:
            now = time.monotonic()
            if now > self._since + self._interval:
                self._left = self._rate
                self._since = now
            if self._left <= 0:
                raise RpcException(
                    f"Failed to invoke service {self.interface.name}.{invocation.method_name} "
                    "because exceed max service tps.",
                    RpcCode.LIMIT_EXCEEDED,
                )
            self._left -= 1
        return await self.inner.invoke(invocation)


class ActiveLimitFilter(Filter):
    """Lets at most `actives` calls of a method be under way to one provider; others wait up to their timeout."""

    GROUPS = frozenset({"consumer"})
    KEY = "actives"

    def __init__(self, inner: Invoker) -> None:
        super().__init__(inner)
        self._limits: dict[str, asyncio.Semaphore | None] = {}

    async def invoke(self, invocation: Invocation) -> Result:
        name = invocation.method_name
        if name not in self._limits:
            limit = self.url.method_int(name, "actives", 0)
            self._limits[name] = asyncio.Semaphore(limit) if limit > 0 else None
        slots = self._limits[name]
        if slots is None:
            return await self.inner.invoke(invocation)
        timeout_ms = self.url.method_int(name, "timeout", 1000)
        try:
            await asyncio.wait_for(slots.acquire(), timeout_ms / 1000)
        except TimeoutError:
            raise RpcException(
                f"Waiting concurrent invoke timeout in client-side for service:  {self.interface.name}, "
                f"method: {name}, timeout: {timeout_ms}. "
                f"max concurrent invoke limit: {self.url.method(name, 'actives')}",
                RpcCode.LIMIT_EXCEEDED,
            ) from None
        try:
            return await self.inner.invoke(invocation)
        finally:
            slots.release()
