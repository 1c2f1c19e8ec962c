"""Writes a line per call: to the log `dubbo.accesslog.<interface>` with `accesslog=true`, else to the file named.

Lines for a file are collected and written once a second by a thread of the loop's executor, so no call waits for
a disk. At most 5,000 lines wait; the rest are dropped, and a warning says how many. A past day's file is renamed first.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
from pathlib import Path

from headrace.services.filters.base import Filter
from headrace.services.hessian2 import brief
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.javatypes import split_descriptor
from headrace.services.url import build_key

logger = logging.getLogger(__name__)

MAX_WAITING = 5_000
MAX_ARGUMENTS = 10_000
WRITE_SECONDS = 1.0


class AccessLogFilter(Filter):
    """Records who called what with which arguments, before the call is made."""

    GROUPS = frozenset({"provider"})
    KEY = "accesslog"
    SUSPENDS = False

    def __init__(self, inner: Invoker) -> None:
        super().__init__(inner)
        place = self.url.get("accesslog")
        self._log = logging.getLogger(f"dubbo.accesslog.{self.interface.name}")
        self._file = None if place.lower() in ("true", "default") else log_file(Path(place))
        self._service = build_key(self.interface.name, self.url.get("group"), self.url.get("version"))

    async def invoke(self, invocation: Invocation) -> Result:
        line = self._line(invocation)
        if self._file is None:
            self._log.info(line)
        else:
            self._file.append(line)
        return await self.inner.invoke(invocation)

    def _line(self, invocation: Invocation) -> str:
        now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        types = ",".join(split_descriptor(invocation.parameter_types))
        arguments = brief(invocation.arguments, MAX_ARGUMENTS) if invocation.arguments else ""
        return (
            f"[{now}] {invocation.remote_address} -> {invocation.local_address} - {self._service} "
            f"{invocation.method_name}({types}) {arguments}"
        )


class AccessLogFile:
    """One file of access lines, shared by all services that name it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[str] = []
        self._dropped = 0
        self._timer: asyncio.TimerHandle | None = None

    def append(self, line: str) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._dropped += 1
            return
        self._waiting.append(line)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(WRITE_SECONDS, self._write_later, loop)

    def _write_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        loop.run_in_executor(None, self._write, self._take())

    def flush(self) -> None:
        """Write the waiting lines now, because the loop is about to end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._write(self._take())

    def _take(self) -> list[str]:
        lines, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        if dropped:
            logger.warning("The access log %s could not keep up: %d lines were dropped", self._path, dropped)
        return lines

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._set_aside()
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
        except OSError as error:
            logger.error("The access log %s cannot be written: %s", self._path, error.strerror)

    def _set_aside(self) -> None:
        if self._path.exists():
            last = datetime.datetime.fromtimestamp(self._path.stat().st_mtime).strftime("%Y%m%d")
            if last != datetime.datetime.now().strftime("%Y%m%d"):
                self._path.rename(self._path.with_name(f"{self._path.name}.{last}"))


_files: dict[Path, AccessLogFile] = {}


def flush_access_logs() -> None:
    for file in _files.values():
        file.flush()


def log_file(path: Path) -> AccessLogFile:
    return _files.setdefault(path.absolute(), AccessLogFile(path.absolute()))
