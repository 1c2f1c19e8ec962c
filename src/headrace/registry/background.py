"""Blocking work that nobody waits for at the end: a stop does not last as long as the cluster is silent."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


async def in_background(work: Callable[[], T]) -> T:
    """What `work` returns or raises, from a daemon thread; `asyncio.to_thread` would hold the process until it is over."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(T, value))

    def run() -> None:
        value, failure = None, None
        try:
            value = work()
        except Exception as error:  # it is raised where the work is awaited
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=run, name="headrace-registry-background", daemon=True).start()
    return await done
