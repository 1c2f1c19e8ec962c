"""A real schema registry inside the test process, beside a broker: its own thread and event loop, a free port."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping
from types import TracebackType

import uvloop

from headrace.registry.serving import serve
from headrace.registry.settings import read

_URL = re.compile(r"schema registry on (\S+?),")


class RegistryThread:
    """Serves from `start()` to `stop()`; `url` is what clients take as `schema.registry.url`."""

    def __init__(self, bootstrap: str, settings: Mapping[str, object] | None = None) -> None:
        self._given = {
            "kafkastore.bootstrap.servers": bootstrap,
            "listeners": "http://127.0.0.1:0",
            **{name: str(value) for name, value in (settings or {}).items()},
        }
        self.url = ""
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> RegistryThread:
        """Returns when it is known which instance writes."""
        self._ready = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="headrace-registry", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def __enter__(self) -> RegistryThread:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # it is raised in the test's thread
            self._failure = error
        self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        def ready(line: str) -> None:
            found = _URL.search(line)
            assert found is not None
            self.url = found[1]
            self._ready.set()

        await serve(read(self._given), self._stop, ready)
