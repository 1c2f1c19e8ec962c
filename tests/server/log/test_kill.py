"""A writer killed at any moment: everything it had acknowledged is there, in order, and retries are
recognised."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.server.log.manager import LogManager
from headrace.wire.errors import KafkaError
from headrace.wire.records import BatchBuilder

WRITER = Path(__file__).with_name("writer.py")


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_survives_being_killed(tmp_path, lab, seed):
    chance = random.Random(seed)
    acknowledged = sequence = 0
    for life in range(3):
        writer = subprocess.Popen(
            [sys.executable, str(WRITER), str(tmp_path / "data"), str(seed * 100 + life)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            start, end_offset, begin = writer.stdout.readline().split()
            assert start == "start"
            assert int(end_offset) >= acknowledged, "an acknowledged record is missing after recovery"
            assert int(begin) >= sequence
            for _ in range(chance.randrange(1, 400)):
                last_offset, sequence = map(int, writer.stdout.readline().split())
                acknowledged = last_offset + 1
        finally:
            writer.kill()
            for line in writer.stdout:
                numbers = line.split()
                if line.endswith("\n") and len(numbers) == 2:
                    acknowledged, sequence = int(numbers[0]) + 1, int(numbers[1])
            writer.wait(30)
            writer.stdout.close()
    manager = LogManager([str(tmp_path / "data")])
    manager.open()
    log = manager.get("t", 0)
    assert log.log_end_offset >= acknowledged
    records = lab.records(log)
    assert [record.offset for record in records] == list(range(log.log_end_offset))
    for record in records:
        text = b"%d" % record.offset
        assert record.value == text * (len(record.value) // len(text))
    with pytest.raises(KafkaError):
        send(log, log.log_end_offset + 1)
    send(log, log.log_end_offset)
    manager.close()


def send(log, sequence: int) -> None:
    """Offsets and sequences run side by side in this log."""
    builder = BatchBuilder(producer_id=5, producer_epoch=0, base_sequence=sequence)
    builder.append(log.environment.clock.now_ms(), b"k", b"v")
    log.append_as_leader(memoryview(builder.build()), leader_epoch=0)
