"""The system clock tells wall time in milliseconds and never runs backwards."""

import time

from headrace.clock import SystemClock


async def test_a_timer_fires_once_and_can_be_cancelled():
    clock = SystemClock()
    fired: list[str] = []
    clock.call_later(0.01, lambda: fired.append("kept"))
    clock.call_later(0.01, lambda: fired.append("cancelled")).cancel()
    await clock.sleep(0.05)
    assert fired == ["kept"]


def test_wall_time_is_milliseconds_since_1970():
    before = int(time.time() * 1000) - 1
    assert before <= SystemClock().now_ms() <= before + 5000
