"""Opens the call's context for the implementation and carries its reply attachments back."""

from __future__ import annotations

from headrace.services.context import CALL, CallContext
from headrace.services.filters.base import Filter
from headrace.services.invocation import Invocation, Result


class ContextFilter(Filter):
    """Makes `headrace.services.current()` describe this call while it runs."""

    GROUPS = frozenset({"provider"})
    ORDER = -10_000
    SUSPENDS = False

    async def invoke(self, invocation: Invocation) -> Result:
        call = CallContext(self.interface.name, invocation)
        token = CALL.set(call)
        try:
            result = await self.inner.invoke(invocation)
        finally:
            CALL.reset(token)
        if call.reply:
            result.attachments = {**(result.attachments or {}), **call.reply}
        return result
