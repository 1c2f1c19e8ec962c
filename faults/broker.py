"""One broker of the campaign: the real broker, on a disk and with a clock that the campaign can make worse.

`python -m faults.broker CONTROL NAME=VALUE …`. CONTROL is a JSON file that may appear and change at any time:
`write_seconds` and `sync_seconds` make the disk slow, `full` fills it, `clock_ms` moves the wall clock.
"""

from __future__ import annotations

import errno
import json
import sys
import threading
import time
from pathlib import Path

from headrace.clock import SystemClock
from headrace.server.config.broker import BrokerConfig
from headrace.server.run import run
from headrace.server.stop_signals import StopSignals
from headrace.testing.disk import FaultyFiles

POLL_SECONDS = 0.1


class JumpingClock(SystemClock):
    """Real time with a wall clock that someone sets wrong; durations are not touched, as in a real machine."""

    offset_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.offset_ms


def obey(control: Path, clock: JumpingClock, files: FaultyFiles) -> None:
    """Do what the control file says, for as long as the process lives."""
    said = ""
    while True:
        text = control.read_text() if control.exists() else "{}"
        if text != said:
            orders = json.loads(text)
            files.write_seconds = orders.get("write_seconds", 0.0)
            files.sync_seconds = orders.get("sync_seconds", 0.0)
            files.write_error = errno.ENOSPC if orders.get("full") else None
            clock.offset_ms = orders.get("clock_ms", 0)
            said = text
        time.sleep(POLL_SECONDS)


def main() -> int:
    control, *settings = sys.argv[1:]
    clock, files = JumpingClock(), FaultyFiles()
    threading.Thread(target=obey, args=(Path(control), clock, files), daemon=True).start()
    config = BrokerConfig.load({}, dict(setting.split("=", 1) for setting in settings))
    with StopSignals() as signals:
        return run(config, signals, clock, files)


if __name__ == "__main__":
    sys.exit(main())
