"""`headrace demo`: everything it promises to look at is there, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo whose temporary files are in `tmp_path`."""
    command = [sys.executable, "-m", "headrace.cli", "demo", "--no-pipeline", "--rate", "500"]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    yield process
    process.kill()
    process.communicate()


def test_a_shop_is_at_work_until_ctrl_c_and_leaves_nothing(demo, headrace, tmp_path):
    lines = iter(demo.stdout.readline, "")
    servers = {"HEADRACE_BOOTSTRAP": re.search(r"ready on ([\d.:]+),", next(lines))[1]}
    shown = re.compile(
        r"\d+:\d\d  ([\d,]+) orders, unread: billing [\d,]+, reports [\d,]+; ([\d,]+) dead letters; no pipeline"
    )
    for line in lines:
        found = shown.match(line)
        if found and found[2] != "0":
            break
    order = headrace("consume", "orders", "--from-beginning", "--max", 1, "--json", env=servers).json_lines[0]
    assert '"amount"' in order["value"]
    assert "has the amount -1.0" in headrace("dlq", "list", "orders.dlq", env=servers).out
    assert {"billing", "reports"} <= {
        each["group"] for each in headrace("groups", "list", "--json", env=servers).json
    }

    children = psutil.Process(demo.pid).children(recursive=True)
    assert children
    demo.send_signal(signal.SIGINT)
    assert demo.wait(90) == 130
    assert demo.stderr.read() == ""
    assert psutil.wait_procs(children, 30)[1] == []
    assert list(tmp_path.glob("headrace-demo-*")) == []


def test_a_mistake_is_one_sentence(headrace):
    assert (
        "is not an address of this machine"
        in headrace("demo", "--listen", "192.0.2.1:9", "--no-pipeline").err
    )
    assert "--listen takes HOST:PORT" in headrace("demo", "--listen", "9092").err
