"""Tells the provider's log what an implementation raised without having declared it.

A registered exception is part of the service's contract and passes silently. Any other passes too (the codec sends
its nearest Java equivalent, in-process calls keep it unchanged), but the operator should see it.
"""

from __future__ import annotations

import logging

from headrace.services.filters.base import Filter
from headrace.services.filters.token import host_of
from headrace.services.hessian2 import DEFAULT_CLASSES, JavaException
from headrace.services.invocation import Invocation, Result

logger = logging.getLogger(__name__)


class ExceptionFilter(Filter):
    """Logs undeclared exceptions with their traceback."""

    GROUPS = frozenset({"provider"})
    SUSPENDS = False

    async def invoke(self, invocation: Invocation) -> Result:
        result = await self.inner.invoke(invocation)
        error = result.exception
        if (
            error is not None
            and not isinstance(error, JavaException)
            and DEFAULT_CLASSES.find(type(error)) is None
        ):
            logger.error(
                "Got unchecked and undeclared exception which called by %s. service: %s, method: %s, exception: %s: %s",
                host_of(invocation.remote_address),
                self.interface.name,
                invocation.method_name,
                type(error).__qualname__,
                error,
                exc_info=error,
            )
        return result
