"""`headrace top`: once for scripts, and live on a terminal with its keys."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cli.conftest import command, environment
from tests.waiting import PATIENCE

SECONDS = "0.3"


@pytest.fixture
def busy(bootstrap, name):
    """A topic that is written to, and a group that is behind; call it to write more."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "seller", "log_level": 0})

    def write():
        for _ in range(50):
            producer.produce(name, b"x" * 100)
        assert producer.flush(60) == 0

    write()
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{name}-readers", "log_level": 0})
    reader.commit(offsets=[TopicPartition(name, 0, 20)], asynchronous=False)
    reader.close()
    return write


def by(rows, key, value):
    return next(row for row in rows if row[key] == value)


def test_one_look_for_a_script_has_the_rates_since_the_one_before(start, busy, name):
    process = start("top", "--json", "--interval", SECONDS)
    while True:
        busy()
        activity = json.loads(process.stdout.readline())
        topic = by(activity["topics"], "topic", name)
        if topic["records_in"]:
            break
    assert topic["bytes_in"] > topic["records_in"] * 100
    assert topic["lag"] >= 30
    assert by(activity["groups"], "group", f"{name}-readers")["records"] >= 30
    (broker,) = activity["brokers"]
    assert broker["controller"] is True
    assert broker["records_in"] >= topic["records_in"]
    assert broker["bytes_out"] is None, "the protocol alone does not tell"


def test_once_prints_tables_and_ends(headrace, busy, name):
    ran = headrace("top", "--once", "--interval", SECONDS)
    assert ran.code == 0, ran.err
    heads = [line.split()[0] for line in ran.lines if line and line.split()[0].isupper()]
    assert heads == ["BROKER", "TOPIC", "GROUP", "CLIENT"]
    (topic,) = [line.split() for line in ran.lines if line.startswith(f"{name} ")]
    assert topic[1:3] == ["1", "ok"]
    groups = headrace("top", "--once", "--interval", SECONDS, "--view", "groups").lines
    assert groups[0].split()[:2] == ["GROUP", "STATE"]
    assert any(line.startswith(f"{name}-readers ") for line in groups)


def test_a_reader_of_a_group_is_a_client_even_without_metrics(headrace, bootstrap, busy, name):
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": name, "client.id": f"{name}-client", "log_level": 0}
    )
    reader.subscribe([name])
    while not reader.assignment():
        reader.poll(0.1)
    found = headrace("top", "--once", "--interval", SECONDS, "--json").json["clients"]
    client = by(found, "client_id", f"{name}-client")
    assert (client["groups"], client["partitions"]) == ([name], 1)
    reader.close()


class Terminal:
    """`headrace top` in a terminal of its own."""

    def __init__(self, bootstrap, *arguments):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            command("top", *arguments),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment(bootstrap), "COLUMNS": "160", "LINES": "40", "TERM": "xterm"},
        )
        self.seen = ""

    def wait_for(self, *texts):
        """Until the screen, as drawn since the last key, has all of these."""
        deadline = time.monotonic() + PATIENCE
        while not all(text in self.seen for text in texts):
            assert time.monotonic() < deadline, f"{texts} not on the screen: {self.seen[-3000:]}"
            ready, _, _ = select.select([self._master], [], [], 1)
            if ready:
                self.seen += os.read(self._master, 65536).decode("utf-8", "replace")

    def press(self, key):
        self.seen = ""
        os.write(self._master, key.encode())

    def end(self):
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            ready, _, _ = select.select([self._master], [], [], 0.1)
            if ready:  # A program that writes to a full terminal never ends.
                self.seen += os.read(self._master, 65536).decode("utf-8", "replace")
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self.slave)


@pytest.fixture
def terminal(bootstrap):
    opened = []

    def open_(*arguments):
        opened.append(Terminal(bootstrap, *arguments))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def test_keys_switch_the_view_and_the_order_and_q_leaves_the_terminal_as_it_was(terminal, busy, name):
    screen = terminal("--interval", SECONDS)
    screen.wait_for("TOPIC", name, "RECORDS IN/S▼", "1 broker")
    screen.press("g")
    screen.wait_for("GROUP", f"{name}-readers", "LAG▼")
    screen.press("r")
    screen.wait_for("LAG▲")
    screen.press("b")
    screen.wait_for("BROKER▲", "controller")
    screen.press("s")
    screen.wait_for("ADDRESS▲")
    screen.press("\x1b[A")
    screen.press("t")
    screen.wait_for("RECORDS IN/S▼")
    assert "__consumer_offsets" not in screen.seen
    screen.press("i")
    screen.wait_for("__consumer_offsets", "hide internal topics")
    screen.press("4")
    screen.wait_for("CLIENT ID")
    screen.press("q")
    assert screen.end() == 0, screen.seen[-2000:]
    assert "\x1b[?1049l" in screen.seen, "the screen from before is back"
    assert termios.tcgetattr(screen.slave) == screen.before


def test_ctrl_c_leaves_the_terminal_as_it_was_too(terminal, busy, name):
    screen = terminal("--view", "groups", "--interval", "30")
    screen.wait_for(f"{name}-readers")
    screen.process.send_signal(2)
    assert screen.end() == 130
    assert "Traceback" not in screen.seen
    assert termios.tcgetattr(screen.slave) == screen.before
