"""A registry in the foreground: the topic is read, the port is bound, the election is joined, and then it says that it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
import uvloop

from headrace import __version__
from headrace.link.addresses import join_address
from headrace.registry.application import Application
from headrace.registry.election import Instance
from headrace.registry.forwarding import Forwarding
from headrace.registry.instance import Running
from headrace.registry.security import Gate
from headrace.registry.settings import Authentication, SettingError, Settings
from headrace.registry.tls import client_context, server_context
from headrace.registry.topic import TopicError

log = logging.getLogger("headrace.registry")

_QUIET_SECONDS = 2.0
"""After so long at the topic it is said what is waited for."""


class ServeError(Exception):
    """Why it could not start: the sentence for the user."""


def run(settings: Settings, stop: Callable[[], asyncio.Event], ready: Callable[[str], None]) -> None:
    """Serve until the event is set that `stop` makes inside the loop. ServeError when it cannot."""
    gc.disable()  # nothing that is loaded is garbage
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, stop, ready))


async def _serve(settings: Settings, stop: Callable[[], asyncio.Event], ready: Callable[[str], None]) -> None:
    await serve(settings, stop(), ready)


async def serve(settings: Settings, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    began = time.monotonic()
    try:
        gate = Gate(settings) if settings.authentication is not Authentication.NONE else None
        tls = server_context(settings)
        forwarding = Forwarding(client_context(settings))
    except SettingError as error:
        raise ServeError(str(error)) from None
    running = Running(settings)
    server, listening = _listen(settings, Application(running, forwarding, gate), tls)
    serving: asyncio.Task[None] | None = None
    try:
        loading = asyncio.ensure_future(running.load())
        where = ",".join(join_address(*each) for each in settings.kafka.bootstrap)
        told = asyncio.get_running_loop().call_later(
            _QUIET_SECONDS, log.info, "still waiting for the topic %s from %s", settings.topic, where
        )
        try:
            if not await _unless(stop, loading):
                return
        finally:
            told.cancel()
        if not gc.isenabled():
            # What was loaded stays: keep it out of later garbage collections.
            gc.freeze()
            gc.enable()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        port = listening.getsockname()[1]
        name = settings.text("host.name") or _reachable(settings.host)
        instance = Instance(name, port, settings.scheme, settings.flag("leader.eligibility"))
        if not await _unless(stop, asyncio.ensure_future(running.join(instance))):
            return
        url = f"{settings.scheme}://{join_address(settings.host, port)}"
        ready(
            f"Headrace {__version__} is ready: schema registry on {url}, {len(running.state.subjects)} subjects in "
            f"{settings.topic} ({time.monotonic() - began:.2f} s)"
        )
        stopping = asyncio.ensure_future(stop.wait())
        ended: list[asyncio.Future[Any]] = [stopping, running.following.failed, serving]
        await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if running.following.failed.done():
            raise ServeError(str(running.following.failed.exception()))
    except TopicError as error:
        raise ServeError(str(error)) from None
    finally:
        server.should_exit = True
        if serving is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await serving
        listening.close()
        await running.stop()
        forwarding.close()


async def _unless(stop: asyncio.Event, wanted: asyncio.Future[None]) -> bool:
    """Whether it was done before the stop."""
    stopping = asyncio.ensure_future(stop.wait())
    either: list[asyncio.Future[Any]] = [wanted, stopping]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if wanted.done():
        await wanted
        return True
    wanted.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await wanted
    return False


class _Server(uvicorn.Server):
    """Without uvicorn's own handling of signals: who runs the registry handles them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(
    settings: Settings, application: Application, tls: ssl.SSLContext | None
) -> tuple[uvicorn.Server, socket.socket]:
    config = uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        http="httptools",
        loop="none",
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="warning",  # it calls itself running before the topic is read
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=1024,
        timeout_graceful_shutdown=5,
    )
    try:
        listening = config.bind_socket()
    except SystemExit:
        raise ServeError(
            f"{join_address(settings.host, settings.port)} is taken or not an address of this machine; choose another with --listen."
        ) from None
    config.load()
    config.ssl = tls
    return _Server(config), listening


def _reachable(host: str) -> str:
    """What other instances call this one: the host it listens on, or this machine's name where that is every address."""
    return socket.gethostname() if host in ("0.0.0.0", "::") else host
