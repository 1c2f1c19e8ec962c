"""A result that is known now or later. Unlike a future it tells at once, in the very turn in which it becomes known, so that
the replies which wait for it leave in that turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Generic, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")

_running: set[asyncio.Task[None]] = set()
"""Kept while they run: the loop itself holds tasks weakly."""


class Promise(Generic[T]):
    __slots__ = ("_callbacks", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Promise[T]], None]] = []

    def done(self) -> bool:
        return self._done

    def set_result(self, value: T) -> None:
        """What is known already stays."""
        if not self._done:
            self._value = value
            self._tell()

    def set_exception(self, error: Exception) -> None:
        if not self._done:
            self._error = error
            self._tell()

    def _tell(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def when_done(self, callback: Callable[[Promise[T]], None]) -> None:
        """Call back with this promise: at once if the result is known. A callback must not raise."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def then(self, convert: Callable[[Promise[T]], U]) -> Promise[U]:
        """A promise of what `convert` makes of this one's result; what it raises is that one's error."""
        converted: Promise[U] = Promise()

        def known(promise: Promise[T]) -> None:
            try:
                value = convert(promise)
            except Exception as error:
                converted.set_exception(error)
            else:
                converted.set_result(value)

        self.when_done(known)
        return converted

    def __await__(self) -> Generator[object, None, T]:
        if not self._done:
            known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_done(lambda _: None if known.done() else known.set_result(None))
            yield from known
        return self.result()


def run(work: Awaitable[T]) -> Promise[T]:
    """Start a task; the promise of its result. One that is cancelled leaves it open."""
    promise: Promise[T] = Promise()

    async def finish() -> None:
        try:
            value = await work
        except Exception as error:
            promise.set_exception(error)
        else:
            promise.set_result(value)

    task = asyncio.get_running_loop().create_task(finish())
    _running.add(task)
    task.add_done_callback(_running.discard)
    return promise
