"""The broker's end of the cleaner process: started with the first task, stopped when there are no more."""

from __future__ import annotations

import asyncio
import os
import sys

from headrace.log.cleaning_task import (
    CleaningResult,
    CleaningTask,
    decode_result,
    encode,
)

_REPLY_BYTES = 64 * 1024 * 1024


class CleanerProcess:
    """Whatever happens to the child, a task ends with a result."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> asyncio.subprocess.Process:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "headrace.log.cleaner_process",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_REPLY_BYTES,
                env={**os.environ, "PYTHONSAFEPATH": "1"},
            )
        return self._process

    async def clean(self, task: CleaningTask) -> CleaningResult:
        try:
            process = await self.start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(encode(task))
            await process.stdin.drain()
            line = await process.stdout.readline()
            if line.endswith(b"\n"):
                return decode_result(line)
        except (OSError, ValueError) as error:
            await self.stop()
            return CleaningResult(error=f"the cleaner process failed: {error}")
        except asyncio.CancelledError:
            await self.stop()
            raise
        await self.stop()
        return CleaningResult(error="the cleaner process ended before it answered")

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
