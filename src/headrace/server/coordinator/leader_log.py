"""The led partition of a coordinator's topic, as the coordinator wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from headrace.server.log.producers import AppendOrigin
from headrace.server.replica.partition import Partition
from headrace.wire.errors import ErrorCode


class LeaderLog:
    def __init__(self, partition: Partition, disk: Executor) -> None:
        self._partition = partition
        self._disk = disk
        self.when_committed: Callable[[int, Callable[[ErrorCode], None]], None] = partition.when_committed

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._partition.log.high_watermark

    @property
    def largest_batch(self) -> int:
        return self._partition.log.config.max_message_bytes

    def append(self, batch: bytearray) -> int:
        return self._partition.append(memoryview(batch), AppendOrigin.COORDINATOR, acks=-1).last_offset

    async def read(self, offset: int, max_bytes: int) -> bytes | bytearray:
        """In a thread: the log is rarely in the page cache when it is loaded."""
        log = self._partition.log
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._disk, lambda: log.read(offset, max_bytes).read())
