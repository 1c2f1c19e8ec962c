"""A runner with rules, to be killed at any moment.

Run as `python worker.py BOOTSTRAP TOPIC GROUP FILE`. It handles each record by a line in FILE, and samples one key in two.
"""

from __future__ import annotations

import os
import sys

from headrace.client import Record, Runner, SampleByKey

bootstrap, topic, group, path = sys.argv[1:]
file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def handle(record: Record) -> None:
    os.write(file, f"{record.topic} {(record.raw_value or b'').decode()}\n".encode())


Runner(
    handle,
    bootstrap,
    topics=topic,
    group_id=group,
    degrade=[SampleByKey(keep=0.5)],
    commit_interval=0.02,
    auto_offset_reset="earliest",
    heartbeat_interval_ms=100,
    session_timeout_ms=6000,
    group_instance_id="one",
).run()
