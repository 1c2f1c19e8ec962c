"""A broker that is asked to stop does so, however early it is asked."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from headrace.server.stop_signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_came_before_the_loop_is_heeded(number):
    before = signal.getsignal(number)

    async def asked():
        return signals.event().is_set()

    with StopSignals() as signals:
        os.kill(os.getpid(), number)
        assert asyncio.run(asked())
    assert signal.getsignal(number) == before


def test_a_signal_that_comes_later_is_heeded():
    async def asked():
        event = signals.event()
        assert not event.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        await event.wait()

    with StopSignals() as signals:
        asyncio.run(asked())


def test_a_signal_that_came_while_a_command_imported_reaches_what_has_taken_it_over_since(tmp_path):
    (tmp_path / "told_while_imported.py").write_text(
        "import os, signal\n"
        "from headrace.server.stop_signals import StopSignals\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "signals = StopSignals().__enter__()\n"
    )
    program = """
import asyncio, sys
from headrace.cli import frame

async def until_told(signals):
    await asyncio.wait_for(signals.event().wait(), 60)
    await asyncio.sleep(0.1)

def action():
    from told_while_imported import signals
    asyncio.run(until_told(signals))
    return 0

sys.exit(frame.run(action))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("moment", range(8))
def test_a_broker_ends_at_whatever_moment_of_its_start_it_is_told_to(tmp_path, moment):
    command = [sys.executable, "-m", "headrace.cli", "up", "--listen", "127.0.0.1:0", "--data", str(tmp_path)]
    # Modules without bytecode take longer to import, and signals used to be lost there.
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(tmp_path / "nothing"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    broker = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    time.sleep(0.1 + moment * 0.15)
    broker.terminate()
    try:
        _, said = broker.communicate(timeout=60)
    finally:
        broker.kill()
    assert broker.returncode in (0, 143, -signal.SIGTERM)
    assert "Traceback" not in said
