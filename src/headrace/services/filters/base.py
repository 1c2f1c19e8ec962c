"""A filter is an invoker in front of another, built once per export or reference from the URL.

`GROUPS` says on which side it is added automatically, `KEY` which parameter (of the service or of any method)
must be set for that, `ORDER` how far out: the lowest is outermost. A filter that never waits sets
`SUSPENDS = False`, so that a chain of such can run without a task.
"""

from __future__ import annotations

from typing import ClassVar

from headrace.services.invoker import Invoker, WrappedInvoker
from headrace.services.url import URL

_OFF = ("", "false", "0", "null", "n/a")


class Filter(WrappedInvoker):
    """One link of the chain; override `invoke`."""

    GROUPS: ClassVar[frozenset[str]] = frozenset()
    KEY: ClassVar[str] = ""
    ORDER: ClassVar[int] = 0
    SUSPENDS: ClassVar[bool] = True

    def __init__(self, inner: Invoker) -> None:
        super().__init__(inner)
        self.suspends = inner.suspends or self.SUSPENDS

    @classmethod
    def is_active(cls, url: URL) -> bool:
        """Whether the URL asks for this filter."""
        if not cls.KEY:
            return True
        return any(
            (key == cls.KEY or key.endswith("." + cls.KEY)) and value.strip().lower() not in _OFF
            for key, value in url.parameters.items()
        )
