"""A broker starts without what it does not use: each start would pay for it, in time and in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

START = """
import asyncio, sys
from headrace.server.config.broker import BrokerConfig
from headrace.server.node import Node

async def start_and_stop():
    node = Node(BrokerConfig.load({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": sys.argv[1]}))
    await node.start()
    print(*sys.modules)
    await node.stop()

asyncio.run(start_and_stop())
"""
UNUSED = (
    "headrace.link.aio",
    "headrace.link.settings",
    "headrace.link.tls_versions",
    "headrace.server.groups.share.service",
    "headrace.server.logins",
    "headrace.server.metrics",
    "headrace.server.mirror",
    "headrace.server.net.login_gate",
    "headrace.server.security.server_tls",
    "headrace.server.share.attach",
    "headrace.server.share.coordinator",
    "headrace.server.telemetry",
    "headrace.wire.otlp",
    "headrace.wire.sasl",
)


def test_a_broker_with_plain_listeners_loads_no_tls_no_logins_no_share_groups_and_no_mirrors(
    tmp_path: Path,
) -> None:
    started = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = started.stdout.split()
    assert "headrace.server.node" in loaded
    assert [name for name in loaded if name.startswith(UNUSED)] == []
