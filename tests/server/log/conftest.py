"""A clock moved by hand, quick ways to make batches and logs, compacted ones among them."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.partition import PartitionLog, ReopenFacts
from headrace.wire.batch import iterate_batches
from headrace.wire.records import BatchBuilder, Record, decode_records
from tests.server.log.compacting import Compacted

T = TypeVar("T")

START_MS = 1_700_000_000_000


class _Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Time that stands still until a test moves it."""

    def __init__(self) -> None:
        self._now_ms = START_MS
        self._timers: list[tuple[int, int, Callable[[], object], _Timer]] = []
        self._number = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def call_later(self, seconds: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer()
        self._number += 1
        heapq.heappush(self._timers, (self._now_ms + int(seconds * 1000), self._number, callback, timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: woken.done() or woken.set_result(None))
        await woken

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        return await asyncio.wait_for(awaitable, seconds)

    def advance(self, milliseconds: int) -> None:
        target = self._now_ms + milliseconds
        while self._timers and self._timers[0][0] <= target:
            due, _, callback, timer = heapq.heappop(self._timers)
            self._now_ms = max(self._now_ms, due)
            if not timer.cancelled:
                callback()
        self._now_ms = target


class LogLab:
    """Makes logs in a directory of their own and batches to put into them."""

    def __init__(self, path: Path, clock: ManualClock) -> None:
        self.path = path
        self.clock = clock
        self.environment = Environment(clock=clock)

    def open(self, facts: ReopenFacts | None = None, name: str = "t", **settings: Any) -> PartitionLog:
        directory = self.path / f"{name}-0"
        directory.mkdir(exist_ok=True)
        return PartitionLog(self.environment, str(directory), name, 0, LogConfig(**settings), facts)

    def batch(
        self, *values: bytes | None, key: bytes | None = None, timestamp: int | None = None, **options: Any
    ) -> memoryview:
        builder = BatchBuilder(**options)
        for value in values:
            builder.append(self.clock.now_ms() if timestamp is None else timestamp, key, value)
        return memoryview(builder.build())

    def append(self, log: PartitionLog, *values: bytes | None, leader_epoch: int = 0, **options: Any) -> int:
        """Append one batch and return its first offset."""
        return log.append_as_leader(self.batch(*values, **options), leader_epoch=leader_epoch).first_offset

    @staticmethod
    def records(log: PartitionLog, offset: int | None = None, end: int | None = None) -> list[Record]:
        """Every record of a log from an offset on, read the way a consumer does."""
        found: list[Record] = []
        at = log.log_start_offset if offset is None else offset
        while True:
            piece = log.read(at, 64 * 1024, up_to_offset=end)
            if not piece.size:
                return found
            data = memoryview(piece.read())
            assert len(data) == piece.size
            for position, header in iterate_batches(data):
                found += [
                    r
                    for r in decode_records(data[position : position + header.size], header)
                    if r.offset >= at
                ]
                at = header.next_offset

    def values(self, log: PartitionLog, offset: int | None = None) -> list[bytes | None]:
        return [record.value for record in self.records(log, offset)]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def lab(tmp_path: Path, clock: ManualClock) -> LogLab:
    return LogLab(tmp_path, clock)


@pytest.fixture
def make_compacted(tmp_path: Path, clock: ManualClock, lab: LogLab) -> Iterator[Callable[..., Compacted]]:
    """Compacted logs on demand: `make_compacted(segment_bytes=1000)`; closed when the test ends."""
    made: list[Compacted] = []

    def make(**settings: Any) -> Compacted:
        compacted = Compacted(tmp_path / f"data{len(made)}", clock, **settings)
        compacted.records = lambda: [
            (record.offset, record.key, record.value) for record in lab.records(compacted.log)
        ]
        made.append(compacted)
        return compacted

    yield make
    for compacted in made:
        compacted.manager.release()
        compacted.executor.shutdown()
