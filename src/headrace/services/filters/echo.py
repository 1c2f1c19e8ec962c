"""Answers `$echo`, with which consumers test that a provider is there."""

from __future__ import annotations

from headrace.services.filters.base import Filter
from headrace.services.invocation import Invocation, Result


class EchoFilter(Filter):
    """Returns the argument of `$echo` without calling the implementation."""

    GROUPS = frozenset({"provider"})
    ORDER = -110_000
    SUSPENDS = False

    async def invoke(self, invocation: Invocation) -> Result:
        if invocation.method_name == "$echo" and len(invocation.arguments) == 1:
            return Result(invocation.arguments[0])
        return await self.inner.invoke(invocation)
