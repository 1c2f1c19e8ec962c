"""The clock that tests move: timers, pauses and limits on it, on any event loop."""

import asyncio
import threading
from datetime import timedelta

import pytest

from headrace.testing.clock import MovableClock

DAY = timedelta(days=1)


async def test_moving_it_fires_what_is_due_in_order_and_leaves_the_rest():
    clock = MovableClock()
    fired = []
    clock.call_later(7200, lambda: fired.append("two hours"))
    clock.call_later(60, lambda: fired.append("a minute"))
    clock.call_later(90000, lambda: fired.append("more than a day"))
    clock.call_later(30, lambda: fired.append("cancelled")).cancel()
    clock.advance(DAY)
    assert fired == ["a minute", "two hours"]
    clock.advance(DAY)
    assert fired == ["a minute", "two hours", "more than a day"]


async def test_both_kinds_of_time_move_together():
    clock = MovableClock()
    wall, monotonic = clock.now_ms(), clock.monotonic()
    clock.advance(1000)
    assert 1_000_000 <= clock.now_ms() - wall < 1_060_000
    assert 1000 <= clock.monotonic() - monotonic < 1060


async def test_time_passes_by_itself_too():
    clock = MovableClock()
    fired = asyncio.Event()
    clock.call_later(0.01, fired.set)
    async with asyncio.timeout(30):
        await fired.wait()
        await clock.sleep(0.01)


async def test_what_was_not_due_comes_nearer():
    clock = MovableClock()
    fired = asyncio.Event()
    clock.call_later(3600.01, fired.set)
    clock.advance(3600)
    async with asyncio.timeout(30):
        await fired.wait()


async def test_a_pause_ends_when_it_is_passed():
    clock = MovableClock()
    sleeping = asyncio.create_task(clock.sleep(3600))
    await asyncio.sleep(0)
    clock.advance(3600)
    async with asyncio.timeout(30):
        await sleeping


async def test_a_limit_is_reached_when_it_is_passed_and_not_before():
    clock = MovableClock()
    assert await clock.wait_for(asyncio.sleep(0, "done"), 3600) == "done"
    waiting = asyncio.create_task(clock.wait_for(asyncio.Event().wait(), 3600))
    await asyncio.sleep(0)
    clock.advance(3599)
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(1)
    with pytest.raises(TimeoutError):
        await waiting


async def test_cancelling_what_waits_is_no_timeout():
    clock = MovableClock()
    waiting = asyncio.create_task(clock.wait_for(asyncio.Event().wait(), 3600))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_another_thread_moves_it_and_returns_when_the_loops_have_acted():
    clock = MovableClock()
    fired = []
    ready, stop = threading.Barrier(3), []

    async def wait(name):
        over = asyncio.Event()
        stop.append((asyncio.get_running_loop(), over))
        clock.call_later(3600, lambda: fired.append(name))
        ready.wait(30)
        await over.wait()

    threads = [threading.Thread(target=lambda name=name: asyncio.run(wait(name))) for name in "ab"]
    for thread in threads:
        thread.start()
    ready.wait(30)
    clock.advance(3600)
    assert sorted(fired) == ["a", "b"]
    for loop, over in stop:
        loop.call_soon_threadsafe(over.set)
    for thread in threads:
        thread.join()
    clock.advance(3600)  # loops that are gone are no trouble


def test_time_does_not_go_back():
    with pytest.raises(ValueError, match="only moves forward"):
        MovableClock().advance(-1)
