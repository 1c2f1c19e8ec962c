"""The broker's end of the cleaner process: started with the first task, stopped when there are no more."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator

from headrace.log.cleaning_task import (
    Answer,
    CleaningEnd,
    CleaningTask,
    decode_answer,
    encode,
)

_ANSWER_BYTES = 64 * 1024 * 1024


class CleanerProcess:
    """Whatever happens to the child, the last answer to a task is its end."""

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
                limit=_ANSWER_BYTES,
                env={**os.environ, "PYTHONSAFEPATH": "1"},
            )
        return self._process

    async def clean(self, task: CleaningTask) -> AsyncGenerator[Answer, None]:
        """The answers as they come. Whoever closes this before the end stops the child."""
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
