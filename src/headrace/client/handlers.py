"""Which kind a handler is: an ordinary function, or one to be awaited.

To take one for the other would count records as handled that were never handled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CoroutineType

from headrace.client.errors import ConfigError


def is_async(handler: Callable[..., object]) -> bool:
    """Whether calling it gives a coroutine, as far as can be known before; objects may have an async __call__."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def check_done(result: object, whose: str) -> None:
    """Refuse what a handler returned when it has not done its work yet."""
    if isinstance(result, CoroutineType):
        result.close()
        raise ConfigError(f"{whose} has returned a coroutine, which nobody runs: give an `async def` itself")
