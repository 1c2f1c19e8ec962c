"""Whatever is done to a log, it answers as a plain list of records would."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.server.log.cleaner import LogCleaner
from headrace.server.log.cleaner_process import clean
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.manager import LogManager
from headrace.wire.compression import Codec
from headrace.wire.records import BatchBuilder

KEYS = [b"a", b"b", b"c", b"a key longer than a digest"]


@pytest.fixture(autouse=True)
def _machine_parts(clock, lab):
    """The clock and the reading helper of this run, for the machine."""
    LogMachine.clock = clock
    LogMachine.lab = lab
    LogMachine.base = lab.path


class LogMachine(RuleBasedStateMachine):
    clock = None
    lab = None
    base = None

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(dir=self.base))
        self.executor = ThreadPoolExecutor(1)
        self.config = LogConfig(
            cleanup_policy=("compact", "delete"),
            segment_bytes=1200,
            index_interval_bytes=150,
            min_cleanable_dirty_ratio=0.0,
            retention_ms=-1,
            segment_ms=100_000,
        )
        self.expected: list[tuple[int, bytes, bytes]] = []
        self.start = self.end = 0
        self.epoch = 0
        self.open()

    def open(self) -> None:
        environment = Environment(clock=self.clock)
        self.manager = LogManager(
            [str(self.path)], environment=environment, config_for=lambda topic: self.config
        )
        self.manager.open()
        self.log = self.manager.create("t", 0, self.config)
        self.log.load()

    def teardown(self) -> None:
        self.manager.release()
        self.executor.shutdown()
        shutil.rmtree(self.path, ignore_errors=True)

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=6),
        codec=st.sampled_from(Codec),
        size=st.integers(0, 300),
    )
    def append(self, keys, codec, size):
        self.clock.advance(7)
        builder = BatchBuilder(codec=codec)
        for number, key in enumerate(keys):
            value = b"%d." % (self.end + number) + b"x" * size
            builder.append(self.clock.now_ms(), key, value)
            self.expected.append((self.end + number, key, value))
        result = self.log.append_as_leader(memoryview(builder.build()), leader_epoch=self.epoch)
        assert result.first_offset == self.end
        self.end += len(keys)
        assert result.last_offset == self.end - 1

    @rule()
    def become_leader_again(self):
        self.epoch += 1

    @rule(share=st.floats(0, 1))
    def truncate(self, share):
        target = self.log.high_watermark + int((self.end - self.log.high_watermark) * share)
        self.log.truncate_to(target)
        self.end = self.log.log_end_offset
        assert self.end <= max(target, self.start)
        self.expected = [record for record in self.expected if record[0] < self.end]

    @rule(share=st.floats(0, 1))
    def raise_high_watermark(self, share):
        current = self.log.high_watermark
        self.log.set_high_watermark(current + int((self.end - current) * share))

    @rule(share=st.floats(0, 1))
    def delete_records(self, share):
        target = self.start + int((self.log.high_watermark - self.start) * share)
        self.log.delete_records(target)
        self.forget_before(self.log.log_start_offset)
        assert self.start >= target

    @rule(keep=st.integers(0, 5000))
    def retain_by_size(self, keep):
        config = self.config
        self.log.update_config(replace(config, retention_bytes=keep))
        self.log.delete_old_segments()
        self.log.update_config(config)
        assert self.log.log_start_offset <= max(self.log.high_watermark, self.start)
        self.forget_before(self.log.log_start_offset)

    def forget_before(self, offset):
        self.start = offset
        self.expected = [record for record in self.expected if record[0] >= offset]

    @precondition(lambda self: self.end > 0)
    @rule(roll=st.booleans())
    def compact(self, roll):
        if roll:
            self.log.roll()

        async def here(task):
            for answer in clean(Environment(clock=self.clock), task):
                yield answer

        async def run():
            return await LogCleaner(self.manager, self.executor, worker=here).clean_one()

        segments = self.log.load().segments
        number = segments.index_of(min(self.log.high_watermark, segments.active.base_offset))
        upper = segments[number].base_offset
        asyncio.run(run())
        latest = {key: offset for offset, key, _ in self.expected if offset < upper}
        self.expected = [
            (offset, key, value)
            for offset, key, value in self.expected
            if offset >= upper or latest[key] == offset
        ]

    @rule(snapshot=st.booleans())
    def flush(self, snapshot):
        assert self.log.prepare_flush(snapshot=snapshot).run() == self.end

    @rule()
    def stop_and_start(self):
        self.manager.close()
        self.open()

    @rule()
    def crash_and_start(self):
        for directory in self.manager.online_directories:
            self.manager.write_checkpoints(directory)
        self.log.load().release()
        self.manager.release()
        self.open()

    @rule(share=st.floats(0, 1), limit=st.integers(1, 3000))
    def read_somewhere(self, share, limit):
        offset = self.start + int((self.end - self.start) * share)
        piece = self.log.read(offset, limit)
        following = [record for record in self.expected if record[0] >= offset]
        if piece.size:
            assert piece.first_offset <= (following[0][0] if following else self.end)
            assert piece.end_offset <= self.end
        else:
            assert not following

    @rule(share=st.floats(0, 1))
    def look_up_by_time(self, share):
        found = self.log.offset_for_timestamp(0)
        assert (found.offset if found else None) == (self.expected[0][0] if self.expected else None)

    @invariant()
    def it_reads_as_the_list(self):
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        records = self.lab.records(self.log)
        assert [(record.offset, record.key, record.value) for record in records] == self.expected


LogMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


class TestModel(LogMachine.TestCase):
    """Hypothesis drives the machine."""
