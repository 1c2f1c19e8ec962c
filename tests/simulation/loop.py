"""The event loop of one simulated process, on virtual time.

Callbacks of one loop keep their order, as asyncio promises; which process runs next, when bytes arrive, a timer fires or a thread
is done, the world decides. A turn of the loop runs what was ready when it began.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.process import Process


class SimulatedLoop(asyncio.AbstractEventLoop):
    def __init__(self, process: Process) -> None:
        self.process = process
        self._world = process.world
        self._ready: deque[asyncio.Handle] = deque()
        self._turn_due = False

    # Running

    def _turn(self) -> None:
        process, ready = self.process, self._ready
        if not process.running:
            self._turn_due = False
            return
        events._set_running_loop(self)
        self._world.acting = process.name
        try:
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
                    if not process.running:
                        break
        finally:
            events._set_running_loop(None)
        self._turn_due = False
        if ready:
            self.wake()

    def wake(self) -> None:
        """There is something to do, or the process was resumed."""
        if not self._turn_due and self._ready and self.process.running:
            self._turn_due = True
            self._world.soon(self._turn)

    # What asyncio asks of a loop

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        if not self._turn_due and self.process.running:
            self._turn_due = True
            self._world.soon(self._turn)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(self.time() + delay, callback, args, self, context)
        self._world.after(max(delay, 0.0) / self.process.host.pace, self._fire, handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def _fire(self, handle: asyncio.TimerHandle) -> None:
        if not handle._cancelled and not self.process.dead:
            self._ready.append(handle)
            self.wake()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def time(self) -> float:
        return self.process.host.monotonic()

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self.process.dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.process.dead:
            error = context.get("exception")
            self.process.world.trouble(f"{self.process.name}: {context.get('message')}: {error!r}")

    # Threads and sockets

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        pool = executor if executor is not None else self.process.default_threads
        return asyncio.wrap_future(pool.submit(func, *args), loop=self)

    async def create_server(
        self, factory: Callable[[], asyncio.BaseProtocol], *, sock: Any, backlog: int = 100
    ) -> Any:
        return self.process.host.network.listen(self.process, sock, factory)

    async def create_connection(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return await self.process.host.network.connect(self.process, host, port, factory)
