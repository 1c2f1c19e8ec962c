"""A program that sends numbered records through an outbox until it is killed.

Run as `python outbox_writer.py FOLDER BOOTSTRAP TOPIC START`; it prints each number once that is safe.
"""

from __future__ import annotations

import itertools
import sys

from headrace.client.outbox import FileOutbox, Relay

folder, bootstrap, topic, start = sys.argv[1:]
with FileOutbox(folder, segment_bytes=2_000) as outbox, Relay(outbox, bootstrap, batch=7, linger_ms=0):
    for number in itertools.count(int(start)):
        outbox.send(topic, str(number), key="k")
        print(number, flush=True)
