"""A real broker inside the test process: its own thread and event loop, a free port, ready in a moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from headrace.broker.authorizer import Authorizer
from headrace.broker.node import Node
from headrace.clock import Clock
from headrace.config.broker import BrokerConfig
from headrace.log.files import Files

T = TypeVar("T")


class BrokerThread:
    """Start with `start()`, stop with `stop()`; start again to find the same data and the same port."""

    def __init__(
        self,
        data: Path,
        settings: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.data = data
        self.settings = dict(settings or {})
        self.port = 0
        self._clock = clock
        self._files = files
        self._authorizer = authorizer
        self.node: Node

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> BrokerThread:
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="headrace-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def run(self, function: Callable[[Node], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the broker's own loop, for tests that look inside."""
        return asyncio.run_coroutine_threadsafe(function(self.node), self._loop).result(30)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        listeners = f"PLAINTEXT://127.0.0.1:{self.port}"
        settings = {"listeners": listeners, "log.dirs": str(self.data), **self.settings}
        try:
            self.node = Node(BrokerConfig.load({}, settings), self._clock, self._files, self._authorizer)
            await self.node.start()
        except BaseException as error:
            self._failure = error
            self._ready.set()
            return
        self.port = self.node.addresses["PLAINTEXT"][1]
        self._ready.set()
        await self._stop.wait()
        await self.node.stop()
