"""A process that writes to a data directory until it is killed, saying after each append what it has
written."""

from __future__ import annotations

import random
import sys

from headrace.server.log.config import LogConfig
from headrace.server.log.manager import LogManager
from headrace.wire.compression import Codec
from headrace.wire.records import BatchBuilder


def main(path: str, seed: int) -> None:
    chance = random.Random(seed)
    config = LogConfig(segment_bytes=chance.choice([3_000, 30_000, 1 << 20]), index_interval_bytes=200)
    manager = LogManager([path], config_for=lambda topic: config)
    manager.open()
    log = manager.create("t", 0, config)
    sequence = next((e.last_sequence + 1 for e in log.active_producers if e.producer_id == 5), 0)
    print("start", log.log_end_offset, sequence, flush=True)
    while True:
        count = chance.randrange(1, 20)
        builder = BatchBuilder(
            codec=chance.choice(list(Codec)), producer_id=5, producer_epoch=0, base_sequence=sequence
        )
        for number in range(count):
            builder.append(
                log.environment.clock.now_ms(),
                b"k",
                b"%d" % (log.log_end_offset + number) * chance.randrange(1, 50),
            )
        result = log.append_as_leader(memoryview(builder.build()), leader_epoch=sequence // 500)
        sequence += count
        print(result.last_offset, sequence, flush=True)
        action = chance.random()
        if action < 0.02:
            log.prepare_flush(snapshot=chance.random() < 0.5).run()
        elif action < 0.03:
            manager.write_checkpoints(manager.directories[0])
        elif action < 0.035:
            log.set_high_watermark(log.log_end_offset)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
