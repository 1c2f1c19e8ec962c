"""A real broker inside the test process: its own thread and event loop, a free port, ready in a moment.

What a test may want to go wrong is at hand: `faults` for its requests, `disk` for its files, `clock` for its time, and
`kill()`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import uvloop

from headrace.server.config.broker import BrokerConfig
from headrace.server.node import Node
from headrace.server.security.authorizer import Authorizer
from headrace.testing.clock import MovableClock
from headrace.testing.disk import FaultyFiles
from headrace.testing.faults import Faults, FaultyDispatcher
from headrace.testing.topics import create_topic, unique_name

T = TypeVar("T")


class BrokerThread:
    """Start with `start()`, end with `stop()` or `kill()`; start again to find the same data and the same port."""

    def __init__(
        self,
        data: Path,
        settings: Mapping[str, object] | None = None,
        clock: MovableClock | None = None,
        files: FaultyFiles | None = None,
        authorizer: Authorizer | None = None,
        login: Mapping[str, str] | None = None,
    ) -> None:
        """`login`: a client's settings of TLS and SASL, with which topics are created."""
        self.data = data
        self.login = dict(login or {})
        self.settings = {name: str(value) for name, value in (settings or {}).items()}
        self.port = 0
        self.clock = clock or MovableClock()
        self.disk = files or FaultyFiles()
        self.faults = Faults()
        self._authorizer = authorizer
        self.node: Node
        self._thread: threading.Thread | None = None

    @property
    def bootstrap(self) -> str:
        """What clients take as `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def client(self) -> dict[str, str]:
        """A client's settings: where the broker is, and the login."""
        return {"bootstrap.servers": self.bootstrap, **self.login}

    def start(self) -> BrokerThread:
        """Returns when clients are served."""
        if self._thread is not None and self._thread.is_alive():
            raise RuntimeError("The broker is running already: stop() or kill() it first.")
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="headrace-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Ask it to stop, as `headrace up` does at SIGTERM; does nothing when it has ended already."""
        self._end(Node.stop)

    def kill(self) -> None:
        """End it at once: connections break, nothing is handed over or flushed, and the next start recovers."""
        self._end(Node.crash)

    def create_topic(
        self,
        name: str | None = None,
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
    ) -> str:
        """A topic, under a name of its own unless one is given; returns the name."""
        name = name or unique_name()
        create_topic(self.bootstrap, name, partitions, config=config, login=self.login)
        return name

    def run(self, function: Callable[[Node], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the broker's own loop, for tests that look inside."""
        return asyncio.run_coroutine_threadsafe(function(self.node), self._loop).result(30)

    def __enter__(self) -> BrokerThread:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _end(self, how: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
        if self._thread is not None and self._thread.is_alive():
            self._how = how
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        listeners = f"PLAINTEXT://127.0.0.1:{self.port}"
        settings = {"listeners": listeners, "log.dirs": str(self.data), **self.settings}
        try:
            self.node = Node(
                BrokerConfig.load({}, settings),
                self.clock,
                self.disk,
                self._authorizer,
                lambda engines: FaultyDispatcher(engines, self.faults),
            )
            await self.node.start()
        except BaseException as error:
            self._failure = error
            self._ready.set()
            return
        self.port = next(iter(self.node.addresses.values()))[1]
        self._ready.set()
        await self._stop.wait()
        await self._how(self.node)
