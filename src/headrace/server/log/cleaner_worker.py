"""The broker's end of the cleaner process: started with the first task, at low priority from the outset."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator

from headrace.server.log.cleaning_task import (
    Answer,
    CleaningEnd,
    CleaningTask,
    decode_answer,
    encode,
)

NICENESS = 8
"""With this niceness it gets a sixth of the broker's share when both want a processor. Under the load of other clients it
compacted 24 MB/s of a topic that received 5 (`make bench ONLY=noisy`), and their small requests hardly waited for it."""
_ANSWER_BYTES = 64 * 1024 * 1024


class CleanerProcess:
    """Whatever happens to the child, the last answer to a task is its end. Belongs to the event loop; the child ends with
    the loop's thread."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> asyncio.subprocess.Process:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "headrace.server.log.cleaner_process",
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_ANSWER_BYTES,
                env={**os.environ, "PYTHONSAFEPATH": "1"},
            )
            _lower_priority(self._process.pid)
        return self._process

    async def clean(self, task: CleaningTask) -> AsyncGenerator[Answer, None]:
        """Yields the answers as they arrive. Closing this early stops the child."""
        failure = "the cleaner process ended before it answered"
        ended = False
        try:
            process = await self.start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(encode(task))
            await process.stdin.drain()
            while not ended and (line := await process.stdout.readline()).endswith(b"\n"):
                answer = decode_answer(line)
                ended = isinstance(answer, CleaningEnd)
                yield answer
        except (OSError, ValueError) as error:
            failure = f"the cleaner process failed: {error}"
        finally:
            if not ended:
                await self.stop()
        if not ended:
            yield CleaningEnd(error=failure)

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


def _lower_priority(pid: int) -> None:
    """Set here and not in the child, which would otherwise do its imports at the broker's own priority."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
        os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
