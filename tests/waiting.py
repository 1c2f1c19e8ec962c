"""Waiting for what must come about: the limit is only for a test that has failed, so it is generous."""

import asyncio
import time
from collections.abc import Callable

PATIENCE = 90.0


def until(condition: Callable[[], object], what: str = "this", seconds: float = PATIENCE) -> None:
    """Look again and again until the condition holds; `what` names it in the failure."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:g} s"
        time.sleep(0.02)


async def until_async(condition: Callable[[], object], what: str = "this", seconds: float = PATIENCE) -> None:
    """The same on an event loop."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:g} s"
        await asyncio.sleep(0.01)
