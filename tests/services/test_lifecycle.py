"""Ending in good order, and hooks into an application's start."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.services import (
    ApplicationConfig,
    Bootstrap,
    ConfigError,
    ConsumerConfig,
    Environment,
    RegistryConfig,
    RpcException,
    Runtime,
    ServicesError,
    interface,
)
from headrace.services.protocols.dubbo.codec import encode_request, request_prefix
from headrace.services.protocols.dubbo.frame import EVENT, HEADER, HEADER_SIZE, Status


@interface("com.acme.Work")
class Work:
    """Work that takes a while."""

    def __init__(self) -> None:
        self.started = threading.Event()

    def do(self, seconds: float) -> str:
        self.started.set()
        time.sleep(seconds)
        return "done"


# -- the end -------------------------------------------------------------------------------------------------


def test_a_call_under_way_finishes_before_the_provider_closes(application: Callable[..., Bootstrap]) -> None:
    app = application(properties={"dubbo.service.shutdown.wait": "10000"})
    work = Work()
    config = app.service(work, scope="remote")
    app.start()
    proxy = application().reference(Work, url=config.urls[0].identity, timeout=10_000, retries=0)
    answers: list[str] = []
    caller = threading.Thread(target=lambda: answers.append(proxy.do(0.5)))
    caller.start()
    assert work.started.wait(10)
    app.stop()
    caller.join(10)
    assert answers == ["done"]
    with pytest.raises(RpcException):
        proxy.do(0)


def test_a_one_way_call_finishes_though_its_consumer_has_gone(
    application: Callable[..., Bootstrap], eventually: Callable[..., None]
) -> None:
    started, go_on, finished = threading.Event(), threading.Event(), threading.Event()

    @interface("com.acme.Notes")
    class Notes:
        async def take(self) -> None:
            started.set()
            await asyncio.to_thread(go_on.wait, 30)
            finished.set()

    app = application(properties={"dubbo.service.shutdown.wait": "30000"})
    config = app.service(Notes(), scope="remote")
    app.start()
    (server,) = app.runtime.protocol("dubbo")._servers.values()  # type: ignore[attr-defined]
    prefix = request_prefix("com.acme.Notes", "0.0.0", "take", "")
    with socket.create_connection(("127.0.0.1", config.urls[0].port), timeout=30) as peer:
        peer.sendall(encode_request(0x80, 1, prefix, None, [], {"path": "com.acme.Notes"}))
        assert started.wait(30)
    eventually(lambda: not server.port.connections)
    stopping = threading.Thread(target=app.stop)
    stopping.start()
    eventually(lambda: not server._server.is_serving())
    go_on.set()
    stopping.join()
    assert finished.is_set()


def test_a_call_that_comes_while_the_provider_is_closing_is_served_too(
    application: Callable[..., Bootstrap], tmp_path: Path
) -> None:
    """Consumers hear of the end a moment later than it begins."""
    app = application(
        registry=RegistryConfig(address=f"embedded://{tmp_path}"),
        properties={"dubbo.service.shutdown.wait": "60000"},
    )
    held = threading.Event()

    class Held(Work):
        def do(self, seconds: float) -> str:
            self.started.set()
            held.wait(seconds)
            return "done"

    work = Held()
    config = app.service(work, interface=Work, scope="remote")
    app.start()
    url = config.urls[0]

    def request(number: int, seconds: float) -> bytes:
        prefix = request_prefix("com.acme.Work", "0.0.0", "do", "D")
        return bytes(encode_request(0xC0, number, prefix, None, [seconds], {"path": "com.acme.Work"}))

    with (
        socket.create_connection((url.host or "", url.port), timeout=30) as peer,
        peer.makefile("rb") as stream,
    ):
        peer.sendall(request(1, 60.0))
        assert work.started.wait(30)
        stopping = threading.Thread(target=app.stop)
        stopping.start()

        def next_frame() -> tuple[int, int, int]:
            _, flags, status, number, length = HEADER.unpack(stream.read(HEADER_SIZE))
            stream.read(length)
            return flags, status, number

        assert next_frame()[0] & EVENT  # "take no new calls", which we have not read yet
        peer.sendall(request(2, 0.0))
        assert next_frame()[1:] == (Status.OK, 2)
        held.set()
        assert next_frame()[1:] == (Status.OK, 1)
        stopping.join(30)


def test_consumers_leave_a_provider_that_is_going(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    registry = RegistryConfig(address=f"embedded://{tmp_path}")
    leaving = application("leaving", registry=registry, properties={"dubbo.service.shutdown.wait": "10000"})
    staying = application("staying", registry=registry)
    for app in (leaving, staying):
        app.service(Work(), scope="remote")
        app.start()
    proxy = application("c", registry=registry, consumer=ConsumerConfig(retries=0, timeout=5000)).reference(
        Work
    )
    outcomes: list[str] = []
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            outcomes.append(proxy.do(0.01))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    eventually(lambda: len(outcomes) > 20)
    leaving.stop()  # without retries, every lost call would end its thread with an error
    before = len(outcomes)
    eventually(lambda: len(outcomes) > before + 20)
    stop.set()
    for caller in callers:
        caller.join(10)
    assert set(outcomes) == {"done"}


def test_a_runtime_that_did_nothing_ends_too(runtime: Callable[..., Runtime]) -> None:
    runtime().shutdown()


def test_a_wait_that_is_no_number_is_one_sentence(application: Callable[..., Bootstrap]) -> None:
    app = application(properties={"dubbo.service.shutdown.wait": "long"})
    with pytest.raises(ConfigError, match=r"dubbo\.service\.shutdown\.wait=long"):
        _ = app.runtime.shutdown_wait_ms
    app.runtime.environment.set_property("dubbo.service.shutdown.wait", "0")


def test_an_application_can_say_how_long_its_end_may_take() -> None:
    def wait_ms(properties: dict[str, str]) -> int:
        runtime = Runtime(Environment(properties=properties, variables={}))
        Bootstrap(ApplicationConfig(name="a", shutwait=700), runtime=runtime)
        return runtime.shutdown_wait_ms

    assert wait_ms({}) == 700
    assert wait_ms({"dubbo.service.shutdown.wait": "5"}) == 5


def test_what_still_runs_on_the_loop_is_cancelled_at_the_end(application: Callable[..., Bootstrap]) -> None:
    ends: list[str] = []

    class Background:
        async def begin(self) -> None:
            self.task = asyncio.ensure_future(self._go_on())
            await asyncio.sleep(0)

        async def _go_on(self) -> None:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise

    app = application()
    app.service(Background())
    app.start()
    proxy = app.reference(Background)
    asyncio.run(proxy.begin())
    app.stop()
    assert ends == ["cancelled"]


def test_a_program_can_end_without_stopping_its_services(tmp_path: Path) -> None:
    """Threads of ours must not keep a program alive that simply ends."""
    program = textwrap.dedent(
        """
        from headrace.services import Bootstrap, ProtocolConfig

        class Api:
            def hello(self) -> str:
                return "hi"

        app = Bootstrap("a", protocol=ProtocolConfig(host="127.0.0.1", port=-1))
        config = app.service(Api(), scope="remote")
        app.start()
        print(app.reference(Api, url=config.urls[0].identity).hello())
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "hi\n")


# -- the beginning -------------------------------------------------------------------------------------------


async def test_an_asgi_application_can_start_services_with_itself(
    application: Callable[..., Bootstrap],
) -> None:
    app = application()
    config = app.service(Work(), scope="remote")
    async with app.lifespan(object()):
        proxy = await app.reference_async(Work, url=config.urls[0].identity)
        assert await proxy.do(0.0) == "done"  # type: ignore[misc]


async def test_services_stay_on_the_loop_they_began_on(application: Callable[..., Bootstrap]) -> None:
    app = application()
    app.service(Work(), scope="local")
    app.start()
    with pytest.raises(ServicesError, match="already run on another event loop"):
        app.runtime.attach(asyncio.get_running_loop())
    await app.stop_async()


def test_no_registry_and_a_registry_called_n_a_are_the_same(application: Callable[..., Bootstrap]) -> None:
    for registry in (None, RegistryConfig(address="N/A"), RegistryConfig(address="n/a")):
        app = application(registry=registry)
        config = app.service(Work(), scope="remote")
        app.start()
        proxy = application(registry=registry).reference(Work, url=config.urls[0].identity)
        assert proxy.do(0.0) == "done"


def test_a_reference_that_fails_half_way_lets_go_of_what_it_has(
    application: Callable[..., Bootstrap],
) -> None:
    app, consumer = application(), application("c")
    config = app.service(Work(), scope="remote")
    app.start()
    with socket.create_server(("127.0.0.1", 0)) as other:
        nobody = f"dubbo://127.0.0.1:{other.getsockname()[1]}"
    with pytest.raises(RpcException, match="Failed to connect to server"):
        consumer.reference(Work, url=f"{config.urls[0].identity};{nobody}")
    assert not consumer.runtime.protocol("dubbo")._shared  # type: ignore[attr-defined]
