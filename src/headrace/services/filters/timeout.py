"""Tells the provider's log which calls took longer than their timeout; the consumer has given up by then."""

from __future__ import annotations

import logging
import time

from headrace.services.filters.base import Filter
from headrace.services.hessian2 import brief
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker

logger = logging.getLogger(__name__)
_NEVER = 2**31 - 1


class TimeoutFilter(Filter):
    """Warns and lets the result pass: only the method itself can decide to stop."""

    GROUPS = frozenset({"provider"})
    KEY = "timeout"
    SUSPENDS = False

    def __init__(self, inner: Invoker) -> None:
        super().__init__(inner)
        self._limits_ms: dict[str, int] = {}

    async def invoke(self, invocation: Invocation) -> Result:
        start = time.perf_counter()
        result = await self.inner.invoke(invocation)
        elapsed_ms = (time.perf_counter() - start) * 1000
        name = invocation.method_name
        limit = self._limits_ms.get(name)
        if limit is None:
            limit = self._limits_ms[name] = self.url.method_int(name, "timeout", _NEVER)
        if elapsed_ms > limit:
            logger.warning(
                "invoke time out. method: %s arguments: %s , url is %s, invoke elapsed %.0f ms.",
                name,
                brief(invocation.arguments),
                self.url,
                elapsed_ms,
            )
        return result
