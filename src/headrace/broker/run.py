"""Runs a broker in the foreground: event loop, log lines, signals, one line when it is ready."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import sys

import uvloop

from headrace import __version__
from headrace.broker.identity import StartError
from headrace.broker.node import Node
from headrace.broker.parent import end_with_supervisor
from headrace.config.broker import BrokerConfig

log = logging.getLogger("headrace")


def run(config: BrokerConfig) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code."""
    end_with_supervisor()
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    _raise_file_limit()
    for notice in config.notices:
        log.info("%s", notice)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(config))
    except StartError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    return 0


def _raise_file_limit() -> None:
    """Connections and log files need more descriptors than a shell usually grants; take all that are allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(config: BrokerConfig) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(config)
    await node.start()
    # What was made at start-up stays: keep it out of every later collection, and collect seldom, since the
    # hot path makes no cycles.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    where = ", ".join(f"{host}:{port}" for host, port in node.addresses.values())
    data = ", ".join(str(path) for path in config.log_dirs)
    print(
        f"Headrace {__version__} is ready: broker {node.broker_id} on {where}, data in {data} "
        f"({loop.time() - started:.2f} s)",
        flush=True,
    )
    try:
        await stop.wait()
    finally:
        await node.stop()
