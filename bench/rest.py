"""rest://'s HTTP server and client beside what libraries offer: `python -m bench.rest [SECONDS ROUNDS]`.

The servers answer the same echo service through the same `RestServer.handle`; only what moves the bytes differs. They
are called by one program that writes ready-made requests. The clients call Headrace's server; httpx takes part
where it is installed. Kinds take turns within a round, and a row is the median of the rounds.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvloop

from bench.processes import Watched, free_port
from bench.systems.base import until_ready
from bench.systems.services import Listening
from headrace.services import URL, Runtime, interface
from headrace.services.interface import describe
from headrace.services.protocols.rest.http import HttpRequest
from headrace.services.protocols.rest.http_client import HttpClient
from headrace.services.protocols.rest.server import RestServer
from headrace.services.proxy import PythonProxyFactory

SERVERS = ("headrace", "uvicorn-httptools", "uvicorn-h11")
CLIENTS = ("headrace", "urllib3", *(["httpx"] if find_spec("httpx") else []))
CALLERS = (1, 32)
SIZES = (16, 1024)
PATH = "/com.acme.Echo/echo"
HEADERS = {"content-type": "application/json", "dubbo-attachments": "trace=abc"}

Figures = tuple[float, float, float, float]
"""Calls a second, median and 99th percentile in ms, CPU in µs a call."""


@interface("com.acme.Echo")
class Echo:
    async def echo(self, text: str) -> str:
        return text


# -- servers -------------------------------------------------------------------------------------------------


async def serve(kind: str, port: int) -> None:
    runtime = Runtime()
    runtime.attach(asyncio.get_running_loop())
    url = URL("rest", "127.0.0.1", port, "com.acme.Echo", {"interface": "com.acme.Echo"})
    server = RestServer(runtime, url, port)
    server.add(PythonProxyFactory().get_invoker(Echo(), describe(Echo), url, runtime.worker_pool))
    if kind == "headrace":
        await server.start()
        await asyncio.Event().wait()
    import uvicorn

    config = uvicorn.Config(
        _asgi(server),
        port=port,
        http=kind.removeprefix("uvicorn-"),  # type: ignore[arg-type]
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
    await uvicorn.Server(config).serve()


def _asgi(server: RestServer) -> Callable[[Any, Any, Any], Awaitable[None]]:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        target = scope["raw_path"].decode("latin-1")
        answer = await server.handle(HttpRequest(scope["method"], target, headers, body))
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(answer.body)).encode())]
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        await send({"type": "http.response.body", "body": answer.body})

    return application


class _Caller(asyncio.Protocol):
    """Sends one request after the other, until the time is up."""

    def __init__(self, request: bytes, length: int, until: float) -> None:
        self._request = request
        self._length = length
        self._until = until
        self.taken: list[float] = []
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._missing = self._length
        self._begun = time.perf_counter()
        self._transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._missing -= len(data)
        if self._missing > 0:
            return
        now = time.perf_counter()
        self.taken.append(now - self._begun)
        if now < self._until:
            self._ask()
        else:
            self._transport.close()
            self.done.set_result(None)


async def load(port: int, callers: int, size: int, seconds: float) -> list[float]:
    """How long each call took."""
    body = json.dumps(["x" * size]).encode()
    lines = [f"POST {PATH} HTTP/1.1", "host: x", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    writer.close()
    length, until = len(head) + size + 2, time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: _Caller(request, length, until), "127.0.0.1", port)
        for _ in range(callers)
    ]
    await asyncio.gather(*(caller.done for _, caller in opened))
    return [taken for _, caller in opened for taken in caller.taken]


# -- clients -------------------------------------------------------------------------------------------------


def _calling(kind: str, port: int, callers: int) -> Callable[[], Awaitable[None]]:
    body = json.dumps(["x" * 16]).encode()
    if kind == "headrace":
        client = HttpClient("127.0.0.1", port, 1 << 20)

        async def call() -> None:
            assert (await client.request(HttpRequest("POST", PATH, HEADERS, body))).status == 200

    elif kind == "httpx":
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        session = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=limits, trust_env=False)

        async def call() -> None:
            assert (await session.post(PATH, content=body, headers=HEADERS)).status_code == 200

    else:
        import urllib3

        pool = urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=callers)
        threads = ThreadPoolExecutor(callers)

        def blocking() -> None:
            assert pool.urlopen("POST", PATH, body=body, headers=HEADERS, retries=False).status == 200

        async def call() -> None:
            await asyncio.get_running_loop().run_in_executor(threads, blocking)

    return call


async def call(kind: str, port: int, callers: int, seconds: float) -> None:
    """Calls for a while and prints the figures."""
    one = _calling(kind, port, callers)
    await one()
    taken: list[float] = []
    until = time.perf_counter() + seconds

    async def again() -> None:
        while (begun := time.perf_counter()) < until:
            await one()
            taken.append(time.perf_counter() - begun)

    cpu = time.process_time()
    await asyncio.gather(*(again() for _ in range(callers)))
    print(json.dumps(_figures(taken, time.process_time() - cpu, seconds)), flush=True)
    os._exit(0)  # without waiting for threads and kept connections


# -- the comparison ------------------------------------------------------------------------------------------


def _figures(taken: list[float], cpu: float, seconds: float) -> Figures:
    taken.sort()
    count = len(taken)
    return count / seconds, taken[count // 2] * 1e3, taken[count * 99 // 100] * 1e3, cpu / count * 1e6


@contextmanager
def _running(kind: str, directory: Path) -> Iterator[tuple[int, Watched]]:
    port = free_port()
    process = Watched([sys.executable, "-m", "bench.rest", "serve", kind, str(port)], directory / kind)
    try:
        until_ready(process, Listening(port))
        yield port, process
    finally:
        process.stop()


def _table(title: str, rows: dict[str, list[Figures]]) -> None:
    print(f"\n{title:34} {'calls/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'CPU µs':>8}")
    for name, rounds in rows.items():
        rate, p50, p99, cpu = (statistics.median(each) for each in zip(*rounds, strict=True))
        print(f"{name:34} {rate:8.0f} {p50:8.3f} {p99:8.3f} {cpu:8.1f}")


def compare(seconds: float, rounds: int) -> None:
    servers: dict[str, list[Figures]] = {}
    clients: dict[str, list[Figures]] = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = {kind: stack.enter_context(_running(kind, directory)) for kind in SERVERS}
        for size in SIZES:
            for callers in CALLERS:
                for _ in range(rounds):
                    for kind, (port, process) in running.items():
                        before = process.cpu_seconds()
                        taken = uvloop.run(load(port, callers, size, seconds))
                        figures = _figures(taken, process.cpu_seconds() - before, seconds)
                        servers.setdefault(f"{kind}, {size} B, {callers} at once", []).append(figures)
        port = running["headrace"][0]
        for callers in CALLERS:
            for _ in range(rounds):
                for kind in CLIENTS:
                    command = ["call", kind, str(port), str(callers), str(seconds)]
                    printed = subprocess.check_output([sys.executable, "-m", "bench.rest", *command])
                    clients.setdefault(f"{kind}, {callers} at once", []).append(json.loads(printed))
    _table("server", servers)
    _table("client", clients)


def main() -> None:
    match sys.argv[1:]:
        case ["serve", kind, port]:
            uvloop.run(serve(kind, int(port)))
        case ["call", kind, port, callers, seconds]:
            uvloop.run(call(kind, int(port), int(callers), float(seconds)))
        case [seconds, rounds]:
            compare(float(seconds), int(rounds))
        case _:
            compare(3, 5)


if __name__ == "__main__":
    main()
