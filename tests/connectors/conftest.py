"""What the connectors' tests share: a broker, topics, a local Spark, and connectors declared and run in a line."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.client import Admin, Producer
from headrace.client.scan import scan
from headrace.connectors import Chunk
from headrace.connectors.config import declare
from headrace.connectors.launch import start
from headrace.connectors.state import State
from headrace.connectors.topic import to_json
from headrace.testing.broker import BrokerThread
from tests.waiting import until

PLUGINS = str(Path(__file__).parent / "plugins")
"""Connectors of the tests' own, found by the driver and, through the environment, by Spark's workers."""
sys.path.append(PLUGINS)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), PLUGINS]))


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory):
    broker = BrokerThread(
        tmp_path_factory.mktemp("broker"), {"group.initial.rebalance.delay.ms": "0"}
    ).start()
    yield broker.bootstrap
    broker.stop()


@pytest.fixture(scope="session")
def admin(bootstrap):
    with Admin(bootstrap) as admin:
        yield admin


@pytest.fixture
def new_topic(admin):
    def make(partitions=1):
        name = f"test-{uuid.uuid4().hex[:12]}"
        admin.create_topic(name, partitions=partitions, replication_factor=1)
        return name

    return make


@pytest.fixture
def read_all(bootstrap, admin):
    """Everything a topic holds now that is committed."""

    def read(topic):
        starts = dict.fromkeys(admin.partitions_of(topic))
        return list(scan({"bootstrap.servers": bootstrap}, starts, isolation_level="read_committed"))

    return read


@pytest.fixture
def serving():
    """Let a server of `http.server` serve in a thread until the test is over."""
    with ExitStack() as stack:

        def serve(server):
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            stack.callback(server.server_close)
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return server

        yield serve


@pytest.fixture
def eventually():
    """Wait until something is so, and fail when it is not in time."""
    return until


@pytest.fixture
def produce(bootstrap):
    """Write values to a topic, whole numbers turning into ``{"id": n}``."""

    def write(topic, values, **kwargs):
        with Producer(bootstrap) as producer:
            for value in values:
                key = kwargs.get("key", lambda value: str(value))(value)
                data = b'{"id":%d}' % value if isinstance(value, int) else value
                producer.send(topic, data, key=key, partition=kwargs.get("partition"))

    return write


@pytest.fixture
def run(spark, bootstrap, tmp_path):
    """Run a connector over what is there now; returns the sentence it failed with, or None."""

    def run_once(name, topic, *, source=None, sink=None, state="state", **tables):
        side = {"source": source} if source else {"sink": sink}
        document = {"topic": {"bootstrap": bootstrap, **topic}, **side, **tables}
        declared = declare(document, default_name=name)
        kept = State(tmp_path / state, name)
        kept.lock()
        try:
            running = start(declared, kept, lambda: spark, once=True)
            while running.is_active():
                running.facts()
                time.sleep(0.05)
            failure = running.failure()
            running.stop()
            return None if failure is None else str(failure)
        finally:
            kept.release()

    return run_once


@pytest.fixture
def declared():
    """A connector with its topic from tables."""

    def make(name="connector", topic=None, **tables):
        return declare({"topic": {"name": "orders", **(topic or {})}, **tables}, default_name=name).connector

    return make


@pytest.fixture
def chunk():
    """Consecutive records of one partition: mappings of fields, or None for a record without a value."""
    import pyarrow as pa

    def make(first, rows, *, schema, keys=None, topic="orders", partition=0, at=None, topic_id=None):
        names = [field.name for field in pa.schema(schema)]
        table = [
            {
                "_topic": topic,
                "_partition": partition,
                "_offset": first + number,
                "_timestamp": (at or (lambda number: datetime(2026, 11, 16, tzinfo=UTC)))(number),
                "_key": keys[number] if keys else None,
                "_value": None if row is None else to_json(row),
                "_headers": [],
                **{name: None if row is None else row.get(name) for name in names},
            }
            for number, row in enumerate(rows)
        ]
        columns = [
            ("_topic", pa.string()),
            ("_partition", pa.int32()),
            ("_offset", pa.int64()),
            ("_timestamp", pa.timestamp("us", "UTC")),
            ("_key", pa.binary()),
            ("_value", pa.binary()),
            ("_headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            *schema,
        ]
        batch = pa.RecordBatch.from_pylist(table, schema=pa.schema(columns))
        return Chunk(topic, partition, first, first + len(rows), batch, topic_id)

    return make


@pytest.fixture
def arriving():
    """A chunk's records as Spark hands them to a task."""
    import pyarrow as pa

    def columns(chunk):
        count = chunk.rows.num_rows
        rows = chunk.rows.append_column("_topic_id", pa.array([chunk.topic_id] * count, pa.string()))
        return rows.append_column("_unreadable", pa.array([False] * count))

    return columns


@pytest.fixture
def make_again(admin):
    """Delete a topic and create another under its name."""

    def delete_and_create(name, partitions=1):
        admin.delete_topic(name)
        admin.create_topic(name, partitions=partitions, replication_factor=1)

    return delete_and_create


@pytest.fixture
def writing():
    """Open a sink as a task does, write chunks, and close it."""

    def write(sink, *chunks):
        sink.open()
        try:
            for chunk in chunks:
                sink.write(chunk)
            return sink.finish()
        finally:
            sink.close()

    return write


@pytest.fixture
def polled():
    """The rows of a source's next batches, until there is nothing new: (rows, where it is now)."""

    def poll(source, at=None):
        at = source.start() if at is None else at
        rows = []
        while (until := source.latest(at)) != at:
            for stretch in source.split(at, until):
                rows += source.rows(*stretch)
            at = until
        return rows, at

    return poll


@pytest.fixture
def connect(tmp_path):
    """Run the command in a directory of its own."""

    def run(*arguments, code=0):
        done = subprocess.run(command(*arguments), capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


@pytest.fixture
def started(tmp_path):
    """Start the command and leave it running; killed at the end if it still is."""
    running = []

    def start(*arguments):
        with open(tmp_path / "stderr", "w") as errors:
            running.append(
                subprocess.Popen(
                    command(*arguments), stdout=subprocess.PIPE, stderr=errors, text=True, cwd=tmp_path
                )
            )
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


class Terminal:
    """The command in a terminal of its own, and what stands there: text, line ends, lines gone up and erased."""

    def __init__(self, columns, arguments, directory):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self._process = subprocess.Popen(
            command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, cwd=directory, env=environment
        )
        os.close(theirs)
        self._ours = ours
        self.pid = self._process.pid
        self._data = b""

    @property
    def text(self):
        return self._data.decode(errors="replace")

    def read_until(self, word, seconds=120):
        deadline = time.monotonic() + seconds
        while word not in self.text:
            assert time.monotonic() < deadline, self.text
            assert self._read(0.2), f"it ended:\n{self.text}"

    def wait(self, seconds=120):
        deadline = time.monotonic() + seconds
        while self._read(0.2):
            assert time.monotonic() < deadline, self.text
        return self._process.wait(60)

    @property
    def screen(self):
        lines, row, column = [""], 0, 0
        for code, number, letter, plain in re.findall(r"(\x1b\[([\d;?]*)([A-Za-z]))|([^\x1b])", self.text):
            if plain == "\n":
                row, lines = row + 1, lines if row + 1 < len(lines) else [*lines, ""]
            elif plain == "\r":
                column = 0
            elif plain:
                lines[row] = lines[row][:column].ljust(column) + plain + lines[row][column + 1 :]
                column += 1
            elif letter == "A":
                row = max(0, row - int(number or 1))
            elif letter == "K":
                assert code == "\x1b[2K", "erases whole lines only"
                lines[row] = ""
        return [line.rstrip() for line in lines]

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def _read(self, seconds):
        """False when the other side is closed; what does not come in time may come later."""
        if select.select([self._ours], [], [], seconds)[0]:
            try:
                self._data += os.read(self._ours, 65536)
            except OSError:  # what Linux answers when nobody has the terminal open any more
                return False
        return True


@pytest.fixture
def terminal(tmp_path):
    """Run the command in a terminal so many columns wide."""
    with ExitStack() as stack:

        def open_one(columns, *arguments):
            opened = Terminal(columns, arguments, tmp_path)
            stack.callback(opened.close)
            return opened

        yield open_one


def command(*arguments):
    return [sys.executable, "-m", "headrace.cli", "connect", *map(str, arguments)]
