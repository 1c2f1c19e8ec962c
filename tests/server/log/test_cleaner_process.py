"""The cleaner's process: it starts when there is work, and ends with its broker or when no work comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from headrace.server.log.cleaner_worker import NICENESS
from headrace.server.log.environment import remove_for_good

SLOW_CLEANER = Path(__file__).with_name("slow_cleaner.py")


async def test_the_real_process_compacts_and_ends(make_compacted, clock):
    box = make_compacted()
    for number in range(50):
        box.put(b"k%d" % (number % 5), b"%d" % number)
    box.log.roll()
    box.cleaner = box.make_cleaner(None)
    assert await box.cleaner.clean_one()
    process = box.cleaner._process._process
    assert process is not None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(own + NICENESS, 19)
    assert os.sched_getscheduler(process.pid) == os.SCHED_BATCH
    assert [value for _, _, value in box.records()] == [b"45", b"46", b"47", b"48", b"49"]
    await box.cleaner._process.stop()
    assert process.returncode is not None
    remove_for_good(box.files, box.manager.environment.trash.take_due(10**15))


async def test_the_process_waits_for_more_work_and_ends_when_none_comes(make_compacted, clock):
    box = make_compacted()
    box.cleaner = box.make_cleaner(None)
    running = asyncio.create_task(box.cleaner.run())

    async def until(condition):
        for _ in range(3000):
            if condition():
                return
            clock.advance(1000)
            await asyncio.sleep(0.01)
        raise AssertionError("it never happened")

    def write():
        for number in range(50):
            box.put(b"k%d" % (number % 5), b"%d" % number)
        box.log.roll()

    write()
    await until(lambda: len(box.records()) == 5)
    process = box.cleaner._process._process
    assert process is not None
    write()
    await until(lambda: len(box.records()) == 5)
    assert box.cleaner._process._process is process
    await until(lambda: box.cleaner._process._process is None)
    await until(lambda: process.returncode is not None)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_the_process_ends_with_a_broker_that_is_killed_whatever_it_is_doing(tmp_path):
    broker = subprocess.Popen([sys.executable, str(SLOW_CLEANER), str(tmp_path)], stdout=subprocess.PIPE)
    try:
        cleaner = os.pidfd_open(int(broker.stdout.readline()))
    finally:
        broker.kill()
        broker.wait(30)
        broker.stdout.close()
    try:
        assert select.select([cleaner], [], [], 30)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(cleaner, signal.SIGKILL)
        os.close(cleaner)


def test_a_process_that_starts_after_its_broker_has_ended_does_no_task():
    command = [sys.executable, "-m", "headrace.server.log.cleaner_process", "0"]
    ended = subprocess.run(command, input=b"a task\n", capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGKILL, b"", b"")


async def test_a_process_that_dies_costs_one_round(make_compacted):
    box = make_compacted()
    for _ in range(20):
        box.put(b"k", b"v")
    box.log.roll()
    box.cleaner = box.make_cleaner(None)
    process = box.cleaner._process
    await process.start()
    process._process.kill()
    await process._process.wait()
    assert await box.cleaner.clean_one()
    assert len(box.records()) == 20
    box.put(b"k", b"v")
    assert await box.clean()
    assert len(box.records()) <= 2
    await process.stop()
