"""A compacted log and a cleaner that works in the test's process, on demand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from headrace.server.log.cleaner import CleanerSettings, LogCleaner
from headrace.server.log.cleaner_process import clean
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import AppendOrigin
from headrace.wire.batch import iterate_batches
from headrace.wire.compression import Codec
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.records import BatchBuilder

COMPACT = {"cleanup_policy": ("compact",), "segment_bytes": 2000, "min_cleanable_dirty_ratio": 0.0}


DAY = 86_400_000


class Compacted:
    """A compacted log and a cleaner that works in this process, on demand."""

    def __init__(self, path, clock, files=None, **settings):
        self.clock = clock
        self.path = path
        self.settings = COMPACT | settings
        self.files = files or Files()
        self.executor = ThreadPoolExecutor(1)
        self.map_bytes = 1 << 20
        self.start()

    def start(self):
        environment = Environment(clock=self.clock, files=self.files)
        self.manager = LogManager(
            [str(self.path)], environment=environment, config_for=lambda topic: LogConfig(**self.settings)
        )
        self.manager.open()
        self.log = self.manager.create("t", 0, LogConfig(**self.settings))
        self.cleaner = self.make_cleaner()

    def make_cleaner(self, worker="here"):
        async def here(task):
            for answer in clean(Environment(clock=self.clock), task):
                yield answer

        return LogCleaner(
            self.manager,
            self.executor,
            CleanerSettings(log_cleaner_dedupe_buffer_size=self.map_bytes),
            worker=here if worker == "here" else worker,
        )

    def crash(self):
        self.manager.release()
        if self.log.is_loaded:
            self.log.load().release()

    def restart(self, *, cleanly=True):
        if cleanly:
            self.manager.close()
        else:
            self.crash()
        self.start()

    def put(self, key, value, **options):
        return self.batch([(key, value)], **options)

    def batch(self, pairs, codec=Codec.NONE, origin=AppendOrigin.CLIENT, **options):
        builder = BatchBuilder(codec=codec, **options)
        for key, value in pairs:
            builder.append(self.clock.now_ms(), key, value, [("h", b"1")])
        offset = self.log.append_as_leader(
            memoryview(builder.build()), leader_epoch=0, origin=origin
        ).first_offset
        self.log.set_high_watermark(self.log.log_end_offset)
        return offset

    def marker(self, producer_id, *, committed, epoch=0):
        data = build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=0,
            committed=committed,
            timestamp=self.clock.now_ms(),
        )
        self.log.append_as_leader(memoryview(data), leader_epoch=0, origin=AppendOrigin.COORDINATOR)
        self.log.set_high_watermark(self.log.log_end_offset)

    async def clean(self):
        """Begin a segment, so that everything so far can be compacted, and compact."""
        self.log.roll()
        return await self.cleaner.clean_one()

    def headers(self):
        found, at = [], self.log.log_start_offset
        while at < self.log.log_end_offset:
            piece = self.log.read(at, 1 << 20)
            if not piece.size:
                break
            for _, header in iterate_batches(piece.read()):
                found.append(header)
                at = header.next_offset
        return found
