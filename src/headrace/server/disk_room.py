"""Reports to the cluster when this broker's disk is full, and when there is room again.

A leader without room cannot acknowledge anything, so the controller moves leadership away until there is room. A data
directory counts as full from the first write that finds no room until a probe finds some: more than one record needs, or the
broker would be back too early. A broker with several directories is full when all of them are; while one has room, it
continues to lead.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Executor

from headrace.clock import Clock
from headrace.server.cluster.store import StoreError
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
PROBE_SECONDS = 2.0
PROBE_BYTES = 2 * 1024 * 1024
PROBE_NAME = "headrace.room"

Report = Callable[[bool], Awaitable[None]]


class DiskRoom:
    def __init__(
        self,
        environment: Environment,
        directories: Collection[str],
        executor: Executor,
        clock: Clock,
        report: Report,
    ) -> None:
        """`report` notes in the store whether this broker's disk is full, which it is when all its data directories are."""
        self._environment = environment
        self._directories = frozenset(directories)
        self._known_full: frozenset[str] = frozenset()
        self._executor = executor
        self._clock = clock
        self._report = report
        self._reported_full = False

    async def run(self) -> None:
        while True:
            await self._clock.sleep(PROBE_SECONDS if self._known_full else LOOK_SECONDS)
            try:
                await self._look()
            except StoreError as error:
                log.info("cannot report the free space on this broker's disk to the cluster: %s", error)
            except Exception:
                log.exception("looking for room on this broker's disk failed")

    async def _look(self) -> None:
        full = self._environment.full_directories
        for directory in self._known_full & full:
            loop = asyncio.get_running_loop()
            if await loop.run_in_executor(self._executor, _has_room, self._environment.files, directory):
                full.discard(directory)
        self._known_full = frozenset(full)
        no_room = self._directories <= full
        if no_room is not self._reported_full:
            await self._report(no_room)
            self._reported_full = no_room
            if not no_room:
                log.info("there is room again on the disk of this broker; it may lead again")


def _has_room(files: Files, directory: str) -> bool:
    """Whether a file of some size can be written; it is unlinked first, so that none is left behind."""
    path = os.path.join(directory, PROBE_NAME)
    try:
        handle = files.open(path, writable=True, create=True)
        files.remove(path)
        handle.write_at(bytes(PROBE_BYTES), 0)
    except OSError:
        return False
    return True
