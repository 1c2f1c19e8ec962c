"""Runs a broker in the foreground: event loop, log lines, signals, one line when it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import sys
from collections.abc import Sequence

import uvloop

from headrace import __version__
from headrace.clock import Clock, SystemClock
from headrace.server.companions import Companion, Companions
from headrace.server.config.broker import BrokerConfig
from headrace.server.identity import StartError
from headrace.server.log.files import Files
from headrace.server.log_lines import log_to_stderr
from headrace.server.node import Node
from headrace.server.security.exposure import exposure, metrics_line
from headrace.server.stop_signals import StopSignals
from headrace.server.supervised import end_with_supervisor

log = logging.getLogger("headrace")


def run(
    config: BrokerConfig,
    signals: StopSignals,
    clock: Clock | None = None,
    files: Files | None = None,
    companions: Sequence[Companion] = (),
) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code."""
    end_with_supervisor()
    log_to_stderr()
    _raise_file_limit()
    for notice in config.notices:
        log.info("%s", notice)
    for warning in config.warnings:
        log.warning("%s", warning)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(Node(config, clock, files), signals, companions))
    except StartError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    return 0


def _raise_file_limit() -> None:
    """Connections and log files need more descriptors than a shell usually grants; take all that are allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _started(node: Node, stop: asyncio.Event) -> bool:
    """Start it, unless a stop signal comes first: it may have to wait for its cluster."""
    starting, stopping = asyncio.ensure_future(node.start()), asyncio.ensure_future(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if starting.done():
        await starting
        return True
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting
    return False


async def _serve(node: Node, signals: StopSignals, companions: Sequence[Companion]) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    stop = signals.event()
    if not await _started(node, stop):
        log.info("the broker was stopped before it served")
        return
    # Objects created at start-up stay: keep them out of later garbage collections, and collect rarely, since the hot
    # path creates no cycles.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    where = ", ".join(f"{host}:{port}" for host, port in node.addresses.values())
    data = ", ".join(str(path) for path in node.config.log_dirs)
    print(
        f"Headrace {__version__} is ready: broker {node.broker_id} on {where}, data in {data} "
        f"({loop.time() - started:.2f} s)"
        f"{metrics_line(node.metrics_address)}"
        f"{exposure(node.config, {name: host for name, (host, _) in node.addresses.items()})}",
        flush=True,
    )
    for name, endpoint in node.guessed_addresses.items():
        log.warning(
            "Listener %s is open on every address and advertises %s:%d, this machine's name; if clients cannot reach "
            "that, set another with --advertise HOST:PORT (advertised.listeners).",
            name,
            *endpoint,
        )
    beside = Companions(companions, SystemClock())
    try:
        beside.start([where.partition(", ")[0]])
        await stop.wait()
    finally:
        await beside.stop()
        await node.stop()
    log.info("broker %d has stopped; everything written is on disk", node.broker_id)
