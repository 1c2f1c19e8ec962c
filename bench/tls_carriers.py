"""What carries TLS best under a broker's connection: the event loop's own, memory BIOs, the socket itself, or a library.

    python -m bench.tls_carriers [--seconds 4]

Each carrier serves the same protocol (frames of 64 KiB in, 4 bytes back; or 4 bytes in, 1 MiB back) in a process of its own; the
client is the same blocking one for all. Printed per carrier: throughput each way, the server's CPU time per GB, small requests a
second, handshakes a second and how long the loop stood still meanwhile, and memory of an idle connection.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import resource
import socket
import ssl
import statistics
import tempfile
import threading
import time
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import uvloop

from headrace.link.tls_stream import TlsStream

FRAME = 64 * 1024
REPLY = bytes(1024 * 1024)
PIECE = 128 * 1024
IDLE = 500


class Frames(asyncio.BufferedProtocol):
    """The least that a broker's connection does: whole frames in place, small replies or large ones in pieces."""

    def __init__(self, by_the_loop: bool = False) -> None:
        self.by_the_loop = by_the_loop
        self.inbox = memoryview(bytearray(16 * 1024))
        self.start = self.end = 0
        self.paused = False
        self.owed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if not self.by_the_loop:  # whose TLS stops when it may buffer nothing
            self.transport.set_write_buffer_limits(high=0)  # type: ignore[attr-defined]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.inbox[self.end :]

    def buffer_updated(self, count: int) -> None:
        self.end += count
        needed = 4
        while self.end - self.start >= 4:
            size = int.from_bytes(self.inbox[self.start : self.start + 4], "big")
            kind, size = size >> 24, size & 0xFFFFFF
            needed = 4 + size
            if self.end - self.start < needed:
                break
            self.start += needed
            if kind:
                self.owed += len(REPLY)
                self.pump()
            else:
                self.transport.write(b"done")  # type: ignore[attr-defined]
        self.make_room(needed)

    def make_room(self, needed: int) -> None:
        """As the broker's receive buffer: move what is left only when it must be moved."""
        held = self.end - self.start
        if held == 0:
            self.start = self.end = 0
        elif self.start + needed > len(self.inbox):
            room = self.inbox if needed <= len(self.inbox) else memoryview(bytearray(8 * FRAME))
            room[:held] = bytes(self.inbox[self.start : self.end])
            self.inbox, self.start, self.end = room, 0, held

    def pump(self) -> None:
        while self.owed and not self.paused:
            self.owed -= PIECE
            self.transport.write(memoryview(REPLY)[:PIECE])  # type: ignore[attr-defined]

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.pump()

    def eof_received(self) -> bool:
        return False


class Quiet:
    def secured(self, stream: TlsStream) -> None: ...

    def failed(self, stream: TlsStream, error: BaseException) -> None: ...


class OverSocket:
    """OpenSSL on the socket itself; the loop says when it is readable and writable."""

    def __init__(
        self, plain: socket.socket, context: ssl.SSLContext, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.loop = loop
        self.socket = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self.out = bytearray()
        self.protocol = Frames()
        self.protocol.connection_made(self)  # type: ignore[arg-type]
        loop.add_reader(plain_fileno := self.socket.fileno(), self.shake)
        self.fd = plain_fileno

    def shake(self) -> None:
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            return
        except OSError:
            self.end()
            return
        self.loop.add_reader(self.fd, self.readable)
        self.readable()

    def readable(self) -> None:
        try:
            while True:
                buffer = self.protocol.get_buffer(-1)
                count = self.socket.recv_into(buffer)
                if not count:
                    self.end()
                    return
                self.protocol.buffer_updated(count)
        except ssl.SSLWantReadError:
            return
        except OSError:
            self.end()

    def end(self) -> None:
        self.loop.remove_reader(self.fd)
        self.loop.remove_writer(self.fd)
        self.socket.close()

    def set_write_buffer_limits(self, high: int) -> None: ...

    def write(self, data: bytes | memoryview) -> None:
        if self.out:
            self.out += data
            return
        view = memoryview(data)
        try:
            while view:
                view = view[self.socket.send(view[:16384]) :]
        except (ssl.SSLWantWriteError, BlockingIOError):
            self.out += view
            self.protocol.pause_writing()
            self.loop.add_writer(self.fd, self.writable)
        except OSError:
            self.end()

    def writable(self) -> None:
        view = memoryview(bytes(self.out))
        try:
            while view:
                view = view[self.socket.send(view[:16384]) :]
        except (ssl.SSLWantWriteError, BlockingIOError):
            self.out = bytearray(view)
            return
        except OSError:
            self.end()
            return
        self.out.clear()
        self.loop.remove_writer(self.fd)
        self.protocol.resume_writing()


class Longest:
    """How long the loop stood still."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.001)
            now = time.monotonic()
            self.worst, last = max(self.worst, now - last - 0.001), now


def server_context(home: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "server.pem")
    context.num_tickets = 1
    return context


async def serve(carrier: str, home: Path, pipe: Pipe) -> None:
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    context = server_context(home)
    if carrier == "plain":
        await loop.create_server(Frames, sock=listening)
    elif carrier == "uvloop":
        await loop.create_server(lambda: Frames(True), sock=listening, ssl=context)
    elif carrier == "aiofastnet":
        import aiofastnet  # type: ignore[import-not-found]

        await aiofastnet.create_server(loop, Frames, sock=listening, ssl=context)
    elif carrier == "memory-bio":
        quiet = Quiet()

        def make() -> TlsStream:
            stream = TlsStream(Frames(), context, quiet)
            loop.call_soon(stream.begin)
            return stream

        await loop.create_server(make, sock=listening)
    else:
        listening.setblocking(False)

        def accept() -> None:
            with contextlib.suppress(BlockingIOError):
                while True:
                    plain, _ = listening.accept()
                    plain.setblocking(False)
                    OverSocket(plain, context, loop)

        loop.add_reader(listening.fileno(), accept)
    longest = Longest()
    watching = asyncio.create_task(longest.run())
    pipe.send(listening.getsockname()[1])
    while True:
        await loop.run_in_executor(None, pipe.poll, None)
        if pipe.recv() == "end":
            watching.cancel()
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send((used.ru_utime + used.ru_stime, resident(), longest.worst))
        longest.worst = 0.0


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_server(carrier: str, home: Path, pipe: Pipe) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(carrier, home, pipe))


class Client:
    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = plain if context is None else context.wrap_socket(plain, server_hostname="localhost")
        self.buffer = bytearray(len(REPLY))

    def receive(self, size: int) -> None:
        view, filled = memoryview(self.buffer), 0
        while filled < size:
            count = self.socket.recv_into(view[filled:size])
            if not count:
                raise ConnectionResetError("the server closed the connection")
            filled += count

    def upload(self, until: float) -> int:
        frame = FRAME.to_bytes(4, "big") + bytes(FRAME)
        sent = 0
        self.socket.sendall(frame * 4)
        while time.monotonic() < until:
            self.socket.sendall(frame)
            self.receive(4)
            sent += FRAME
        self.receive(16)
        return sent

    def download(self, until: float) -> int:
        got = 0
        while time.monotonic() < until:
            self.socket.sendall(b"\1\0\0\0")
            self.receive(len(REPLY))
            got += len(REPLY)
        return got

    def ping(self, until: float) -> int:
        count = 0
        frame = (100).to_bytes(4, "big") + bytes(100)
        while time.monotonic() < until:
            self.socket.sendall(frame)
            self.receive(4)
            count += 1
        return count


def measure(carrier: str, home: Path, seconds: float) -> dict[str, float]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run_server, args=(carrier, home, there))
    process.start()
    port = here.recv()
    context = None if carrier == "plain" else ssl.create_default_context(cafile=str(home / "ca.pem"))

    def asked() -> tuple[float, int, float]:
        here.send("state")
        answer: tuple[float, int, float] = here.recv()
        return answer

    row: dict[str, float] = {}
    client = Client(port, context)
    for name, work in (("upload", client.upload), ("download", client.download), ("ping", client.ping)):
        work(time.monotonic() + 0.3)
        before, began = asked()[0], time.monotonic()
        moved = work(time.monotonic() + seconds)
        took, cpu = time.monotonic() - began, asked()[0] - before
        row[name] = moved / took / (1 if name == "ping" else 1e6)
        row[f"{name} CPU"] = cpu / moved * (1e6 if name == "ping" else 1e9)
    asked()
    before_memory = asked()[1]
    idle: list[Client] = []
    lock = threading.Lock()

    def connect(count: int) -> None:
        for _ in range(count):
            made = Client(port, context)
            made.ping(time.monotonic() + 0.0001)
            with lock:
                idle.append(made)

    began = time.monotonic()
    threads = [threading.Thread(target=connect, args=(IDLE // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row["connects"] = IDLE / (time.monotonic() - began)
    _, memory, worst = asked()
    row["stall ms"] = worst * 1000
    row["idle KiB"] = (memory - before_memory) / IDLE / 1024
    here.send("end")
    process.join()
    return row


def write_certificates(home: Path) -> None:
    import trustme  # type: ignore[import-not-found]

    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    server = authority.issue_cert("localhost", key_type=trustme.KeyType.RSA)
    server.private_key_and_cert_chain_pem.write_to_path(home / "server.pem")
    authority.cert_pem.write_to_path(home / "ca.pem")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=4.0)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument(
        "--carriers", default="plain,uvloop,memory-bio,socket,aiofastnet", help="separated by commas"
    )
    given = arguments.parse_args()
    carriers = given.carriers.split(",")
    rounds: dict[str, list[dict[str, float]]] = {carrier: [] for carrier in carriers}
    with tempfile.TemporaryDirectory() as folder:
        write_certificates(Path(folder))
        for _ in range(given.rounds):
            for carrier in carriers:
                rounds[carrier].append(measure(carrier, Path(folder), given.seconds))
    units = {
        "upload": "MB/s",
        "upload CPU": "s/GB",
        "download": "MB/s",
        "download CPU": "s/GB",
        "ping": "/s",
        "ping CPU": "µs",
        "connects": "/s",
        "stall ms": "ms",
        "idle KiB": "KiB",
    }
    print("carrier".ljust(12), *(f"{name} {unit}".rjust(17) for name, unit in units.items()))
    for carrier in carriers:
        medians = (statistics.median(row[name] for row in rounds[carrier]) for name in units)
        print(carrier.ljust(12), *(f"{value:17.2f}" for value in medians))


if __name__ == "__main__":
    main()
