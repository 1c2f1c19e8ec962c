"""Counts the calls of one service on one side: how many, how they ended, how long they took, how many are under way.

Plain numbers that only the event loop changes; `metrics_page` formats them when it is scraped. It stands in front of
all other filters of an export, and in front of the whole cluster of a reference, so that refused calls count too.
Only declared methods have a name of their own: what else the wire may ask for is counted together.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from headrace.services.errors import RpcCode, RpcException
from headrace.services.filters.base import Filter
from headrace.services.generic import is_generic_call
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.pool import PoolExhaustedError

BUCKETS_MS: Final = (
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1000.0,
    2500.0,
    5000.0,
    10000.0,
)
OTHER: Final = "other"
"""The label of a call whose method the interface does not declare."""


class Failure(Enum):
    """Why a call failed; the values are parts of the metrics' names."""

    BUSINESS = "business_failed"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    NETWORK = "failed_network"
    UNAVAILABLE = "failed_service_unavailable"
    CODEC = "failed_codec"
    FORBIDDEN = "failed_forbidden"
    CANCELLED = "failed_cancelled"
    UNKNOWN = "unknown_failed"


_BY_CODE: Final = {
    RpcCode.NETWORK: Failure.NETWORK,
    RpcCode.TIMEOUT: Failure.TIMEOUT,
    RpcCode.BIZ: Failure.BUSINESS,
    RpcCode.FORBIDDEN: Failure.FORBIDDEN,
    RpcCode.SERIALIZATION: Failure.CODEC,
    RpcCode.NO_INVOKER: Failure.UNAVAILABLE,
    RpcCode.LIMIT_EXCEEDED: Failure.LIMIT,
}


def failure_of(error: Exception) -> Failure:
    """The kind of failure that keeps a call from being made or answered."""
    if isinstance(error, PoolExhaustedError):
        return Failure.LIMIT
    if isinstance(error, RpcException):
        return next((kind for code, kind in _BY_CODE.items() if code == error.code), Failure.UNKNOWN)
    return Failure.UNKNOWN


class ServiceKey(NamedTuple):
    """What the series of one service on one side have in common."""

    side: str
    application: str
    interface: str
    group: str
    version: str


@dataclass(slots=True)
class MethodCalls:
    """The calls of one method."""

    total: int = 0
    succeeded: int = 0
    processing: int = 0
    failures: dict[Failure, int] = field(default_factory=lambda: dict.fromkeys(Failure, 0))
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_MS) + 1))
    """Calls by duration, each in one bucket; the last is for those longer than every bound."""
    sum_ms: float = 0.0
    last_ms: float = 0.0
    min_ms: float = float("inf")
    max_ms: float = 0.0

    def began(self) -> None:
        self.total += 1
        self.processing += 1

    def ended(self, failure: Failure | None, duration_ms: float) -> None:
        self.processing -= 1
        if failure is None:
            self.succeeded += 1
        else:
            self.failures[failure] += 1
        self.buckets[bisect_left(BUCKETS_MS, duration_ms)] += 1
        self.sum_ms += duration_ms
        self.last_ms = duration_ms
        self.min_ms = min(self.min_ms, duration_ms)
        self.max_ms = max(self.max_ms, duration_ms)


class ServiceCalls:
    """The calls of one service on one side, by method, and the references they are made through."""

    def __init__(self) -> None:
        self.methods: dict[str, MethodCalls] = {OTHER: MethodCalls()}
        self.references: list[Invoker] = []

    def declare(self, names: list[str]) -> None:
        for name in names:
            self.methods.setdefault(name, MethodCalls())


class MetricsFilter(Filter):
    """Counts every call that passes, but for `$echo`, which calls nothing."""

    SUSPENDS = False

    def __init__(self, inner: Invoker, calls: ServiceCalls) -> None:
        super().__init__(inner)
        self._calls = calls
        calls.declare(list(inner.interface.methods))

    async def invoke(self, invocation: Invocation) -> Result:
        if invocation.method_name == "$echo":
            return await self.inner.invoke(invocation)
        calls = self._of(invocation)
        failure: Failure | None = Failure.CANCELLED  # unless it ends in one of the ways below
        start = time.perf_counter()
        calls.began()
        try:
            result = await self.inner.invoke(invocation)
            failure = None if result.exception is None else Failure.BUSINESS
        except Exception as error:
            failure = self._kind_of(error)
            raise
        finally:
            calls.ended(failure, (time.perf_counter() - start) * 1000)
        return result

    def _kind_of(self, error: Exception) -> Failure:
        return failure_of(error)

    def _of(self, invocation: Invocation) -> MethodCalls:
        methods = self._calls.methods
        if is_generic_call(invocation):
            named = invocation.arguments[0]
            if isinstance(named, str) and named.strip() in self.interface.methods:
                return methods[named.strip()]
        return methods.get(invocation.method_name) or methods[OTHER]


class ReferenceMetricsFilter(MetricsFilter):
    """The same in front of a reference, which is known as one until it is destroyed."""

    def __init__(self, inner: Invoker, calls: ServiceCalls) -> None:
        super().__init__(inner, calls)
        calls.references.append(self)

    def _kind_of(self, error: Exception) -> Failure:
        """Without providers a registry's directory forbids calls, as in Dubbo; a provider's refusal has another code."""
        kind = super()._kind_of(error)
        return Failure.UNAVAILABLE if kind is Failure.FORBIDDEN else kind

    async def destroy(self) -> None:
        if self in self._calls.references:
            self._calls.references.remove(self)
        await super().destroy()
