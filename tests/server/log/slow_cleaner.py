"""A process that compacts a log so slowly that it takes minutes, and prints the cleaner's process id once that has begun."""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvloop

from headrace.server.log.cleaner import CleanerSettings, LogCleaner
from headrace.server.log.config import LogConfig
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import PartitionLog
from headrace.wire.records import BatchBuilder


def append(log: PartitionLog, value: bytes) -> None:
    builder = BatchBuilder()
    builder.append(log.environment.clock.now_ms(), b"k%d" % log.log_end_offset, value)
    log.append_as_leader(memoryview(builder.build()), leader_epoch=0)
    log.set_high_watermark(log.log_end_offset)
    log.roll()


def wait_for_file(path: Path) -> None:
    for _ in range(6000):
        if path.exists():
            return
        time.sleep(0.01)
    raise TimeoutError(f"{path} does not come")


async def main(path: str) -> None:
    config = LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    manager = LogManager([path], config_for=lambda topic: config)
    manager.open()
    log = manager.create("t", 0, config)
    disk = ThreadPoolExecutor(1)
    append(log, b"v" * 500_000)
    await LogCleaner(manager, disk).clean_one()
    # The new record's keys are mapped at once; reading the part that is compacted already takes long.
    append(log, b"v")
    slow = LogCleaner(manager, disk, CleanerSettings(log_cleaner_io_max_bytes_per_second=1000.0))
    compacting = asyncio.create_task(slow.clean_one())
    await asyncio.to_thread(wait_for_file, Path(log.directory, f"{0:020d}.log.cleaned"))
    assert slow._process._process is not None
    print(slow._process._process.pid, flush=True)
    await compacting


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
