"""Reminds a consumer, once a method, that what it calls is deprecated."""

from __future__ import annotations

import logging

from headrace.services.filters.base import Filter
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker

logger = logging.getLogger(__name__)


class DeprecatedFilter(Filter):
    """Logs the first call of each deprecated method."""

    GROUPS = frozenset({"consumer"})
    KEY = "deprecated"
    SUSPENDS = False

    def __init__(self, inner: Invoker) -> None:
        super().__init__(inner)
        self._seen: set[str] = set()

    async def invoke(self, invocation: Invocation) -> Result:
        name = invocation.method_name
        if name not in self._seen:
            self._seen.add(name)
            if self.url.method_bool(name, "deprecated", False):
                logger.error(
                    "The service method %s.%s is DEPRECATED! Declare from %s",
                    self.interface.name,
                    name,
                    self.url,
                )
        return await self.inner.invoke(invocation)
