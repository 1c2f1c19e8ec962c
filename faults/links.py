"""The network of the campaign: TCP proxies whose links can be cut, cut one way, or slowed.

Every broker and ZooKeeper is reached through a `Door` on a loopback port. A door asks who is calling (a name) and pumps
the bytes through that caller's `Link`. A cut link holds what is under way and delivers it late, when the link heals, as a
network does; one that is cut with `reset` loses its connections and refuses new ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from collections.abc import Awaitable, Callable, Iterable

import uvloop

PIECE = 64 * 1024
Identify = Callable[[asyncio.StreamReader], Awaitable[tuple[str, bytes]]]
"""Reads as little as tells who calls; returns the caller's name and what was read."""


async def anyone(_: asyncio.StreamReader) -> tuple[str, bytes]:
    return "", b""


async def by_client_id(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """A broker says its number in the client id of its first request: `headrace-broker-2` is caller "2"."""
    head = await reader.readexactly(14)
    (length,) = struct.unpack_from(">h", head, 12)
    name = await reader.readexactly(max(length, 0))
    return name.decode().rpartition("-")[2], head + name


class Way:
    """One direction of a link."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.delay = 0.0

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self.open.wait()
                writer.write(piece)
                await writer.drain()
        # Nobody hears through a cut link that the other side has gone.
        await self.open.wait()


class Link:
    """Between one caller and one door: `there` carries what the caller says, `back` the answers."""

    def __init__(self) -> None:
        self.there, self.back = Way(), Way()
        self.refusing = False
        self._connections: set[asyncio.StreamWriter] = set()

    def cut(self, *, there: bool = True, back: bool = True, reset: bool = False) -> None:
        if there:
            self.there.open.clear()
        if back:
            self.back.open.clear()
        if reset:
            self.refusing = True
            for writer in list(self._connections):
                writer.transport.abort()

    def heal(self) -> None:
        self.refusing = False
        self.there.delay = self.back.delay = 0.0
        self.there.open.set()
        self.back.open.set()

    async def carry(
        self,
        caller: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        target: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Until either side is done. An end that one side makes reaches the other at once or when the link heals."""
        self._connections |= {caller[1], target[1]}
        pumps = [
            asyncio.create_task(self.there.pump(caller[0], target[1])),
            asyncio.create_task(self.back.pump(target[0], caller[1])),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._connections -= {caller[1], target[1]}


class Door:
    """A loopback port that leads to `target`, which may move (a broker that starts again has another port)."""

    def __init__(self, identify: Identify) -> None:
        self.port = 0
        self.target: int | None = None
        self._identify = identify
        self._links: dict[str, Link] = {}
        self._server: asyncio.Server

    def link(self, caller: str = "") -> Link:
        return self._links.setdefault(caller, Link())

    @property
    def links(self) -> list[Link]:
        return list(self._links.values())

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target: asyncio.StreamWriter | None = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            name, said = await self._identify(reader)
            link = self.link(name)
            if not link.refusing and self.target is not None:
                await link.there.open.wait()
                far, target = await asyncio.open_connection("127.0.0.1", self.target)
                target.write(said)
                await link.carry((reader, writer), (far, target))
        for each in (writer, target):
            if each is not None:
                each.transport.abort()


class Network:
    """All doors, in a thread of its own, where links are also cut and healed."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._ready.set()
        await self._stop.wait()

    def door(self, identify: Identify = anyone) -> Door:
        async def make() -> Door:
            door = Door(identify)
            await door.open()
            return door

        return asyncio.run_coroutine_threadsafe(make(), self._loop).result(10)

    def cut(
        self, links: Iterable[Link], *, there: bool = True, back: bool = True, reset: bool = False
    ) -> None:
        async def change() -> None:
            for link in links:
                link.cut(there=there, back=back, reset=reset)

        asyncio.run_coroutine_threadsafe(change(), self._loop).result(10)

    def slow(self, links: Iterable[Link], seconds: float) -> None:
        """Every piece takes so much longer, each way."""
        for link in links:
            link.there.delay = link.back.delay = seconds

    def heal(self, links: Iterable[Link]) -> None:
        async def change() -> None:
            for link in links:
                link.heal()

        asyncio.run_coroutine_threadsafe(change(), self._loop).result(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
