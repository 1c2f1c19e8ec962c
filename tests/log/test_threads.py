"""Threads that read cold data see a consistent log while the loop appends, rolls and removes."""

from __future__ import annotations

import random
import sys
import threading

import pytest

from headrace.wire.batch import iterate_batches
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.records import decode_records


@pytest.fixture
def _frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_frequent_switches")
def test_reads_in_threads_return_the_records_asked_for_whatever_the_loop_does(lab):
    log = lab.open(
        segment_bytes=8000, index_interval_bytes=100, retention_bytes=40_000, file_delete_delay_ms=0
    )
    lab.append(log, b"0")
    log.set_high_watermark(1)
    stop = threading.Event()
    problems: list[BaseException] = []
    slices = [0, 0]

    def read(number: int) -> None:
        chance = random.Random(number)
        try:
            while not stop.is_set():
                low, high = log.log_start_offset, log.log_end_offset
                offset = chance.randrange(low, high) if chance.random() < 0.7 else high - 1
                try:
                    piece = log.read(offset, chance.choice([1, 500, 5000]))
                except KafkaError as error:
                    if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                        raise
                    continue
                data = memoryview(piece.read())
                expected = None
                for position, header in iterate_batches(data):
                    if expected is None:
                        assert header.base_offset <= offset <= header.last_offset
                    else:
                        assert header.base_offset == expected
                    expected = header.next_offset
                    for record in decode_records(data[position : position + header.size], header):
                        assert record.value.startswith(b"%d" % record.offset)
                assert expected is not None
                slices[number] += 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    chance = random.Random(9)
    try:
        for step in range(4000):
            count = chance.randrange(1, 4)
            end = log.log_end_offset
            lab.append(log, *(b"%d " % (end + i) + b"x" * chance.randrange(60) for i in range(count)))
            log.set_high_watermark(log.log_end_offset)
            if step % 40 == 0:
                log.delete_old_segments()
                for path in lab.environment.trash.take_due(lab.clock.now_ms()):
                    lab.environment.files.remove(path)
            if step % 100 == 0:
                log.flush()
            if problems:
                break
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not problems, problems[0]
    assert min(slices) > 10
    assert log.offline_reason is None
