"""Answers `$echo`, with which consumers check that a provider answers."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from headrace.services.filters.base import Filter
from headrace.services.invocation import Invocation, Result


class EchoFilter(Filter):
    """Returns the argument of `$echo` without calling the implementation."""

    GROUPS = frozenset({"provider"})
    ORDER = -110_000
    SUSPENDS = False

    def invoke(self, invocation: Invocation) -> Coroutine[Any, Any, Result]:
        if invocation.method_name == "$echo" and len(invocation.arguments) == 1:
            return _echo(invocation)
        return self.inner.invoke(invocation)


async def _echo(invocation: Invocation) -> Result:
    return Result(invocation.arguments[0])
