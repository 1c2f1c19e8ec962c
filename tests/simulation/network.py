"""A simulated network: TCP between hosts, as asyncio transports.

Bytes of a connection arrive in order and in pieces; connections among each other do not. A link may be slow, or cut in one
direction: what is sent then waits, as TCP sends it again, and arrives when the link is whole. A connection whose host lost its
power is half open: nobody tells the other end until it sends something after the reboot.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.process import Host, Process

WINDOW = 256 * 1024
"""What the kernels of both ends hold of one direction before the sender has to wait."""
HIGH = 64 * 1024
DELAY = 300e-6
MOST_READ = 64 * 1024


class SimulatedSocket:
    """A bound address; and what transports say their socket is."""

    def __init__(self, network: Network, address: tuple[str, int]) -> None:
        self._address = address
        self._number = next(network.numbers)

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def fileno(self) -> int:
        return self._number

    def setsockopt(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass


class SimulatedServer:
    def __init__(
        self,
        network: Network,
        process: Process,
        address: tuple[str, int],
        factory: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self.process = process
        self.factory = factory
        self._network = network
        self._address = address

    def close(self) -> None:
        if self._network.servers.get(self._address) is self:
            del self._network.servers[self._address]


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self, network: Network, process: Process, socket: SimulatedSocket, peername: tuple[str, int]
    ) -> None:
        super().__init__({"socket": socket, "peername": peername, "sockname": socket.getsockname()})
        self.network = network
        self.process = process
        self.socket = socket
        self.peer: SimulatedTransport
        self.protocol: Any = None
        self.name = ""
        self._closing = False
        self._lost = False
        self._reading = True
        self._inbox: deque[bytes] = deque()
        self._ended: BaseException | bool | None = False
        """How the peer ended the connection, once everything it sent was read; False while it has not."""
        self._underway = 0
        """Bytes written and not read by the peer."""
        self._high = HIGH
        self._paused = False
        self.sent = 0
        self.arrived = 0
        """How many pieces were sent, and how many of them have arrived in their turn."""
        self.early: dict[int, bytes | BaseException | None] = {}
        """Pieces that overtook others, by number."""
        self._read_due = False
        self.silent = False
        """Its host lost its power, or its peer's did."""

    # What protocols ask of a transport

    def write(self, data: Any) -> None:
        if self._closing or not data:
            return
        self._underway += len(data)
        self.network.send(self, bytes(data))
        if not self._paused and self.get_write_buffer_size() > self._high:
            self._paused = True
            self.process.loop.call_soon(self._pause_writing)

    def _pause_writing(self) -> None:
        if self._paused and not self._lost:
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return max(0, self._underway - WINDOW)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH if high is None else high

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._read_soon()

    def is_reading(self) -> bool:
        return self._reading

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.network.send(self, None)
            self.process.loop.call_soon(self._lose, None)

    def abort(self) -> None:
        if not self._closing:
            self._closing = True
            self.network.send(self, ConnectionResetError("Connection reset by peer"))
            self.process.loop.call_soon(self._lose, None)

    def can_write_eof(self) -> bool:
        return False

    # What the network does to it

    def deliver(self, what: bytes | BaseException | None) -> None:
        """Bytes, the end of the connection, or its reset."""
        if self._lost or self.process.dead:
            return
        if isinstance(what, bytes):
            self._inbox.append(what)
        elif self._ended is False:
            self._ended = what
        self._read_soon()

    def _read_soon(self) -> None:
        if not self._read_due and (self._inbox or self._ended is not False):
            self._read_due = True
            self.process.loop.call_soon(self._read)

    def _read(self) -> None:
        self._read_due = False
        if self._closing or self.protocol is None:
            return
        taken = 0
        while self._inbox and self._reading and taken < MOST_READ and not self._closing:
            data = self._inbox.popleft()
            buffer = self.protocol.get_buffer(len(data))
            room = len(buffer)
            if room < len(data):
                self._inbox.appendleft(data[room:])
                data = data[:room]
            buffer[: len(data)] = data
            del buffer
            taken += len(data)
            self.protocol.buffer_updated(len(data))
        if taken:
            self.peer.acknowledged(taken)
        if self._closing:
            return
        if not self._inbox and self._ended is not False:
            error = self._ended if isinstance(self._ended, BaseException) else None
            self._closing = True
            self._lose(error)
        elif self._inbox and self._reading:
            self._read_soon()

    def acknowledged(self, count: int) -> None:
        self._underway -= count
        if self._paused and self.get_write_buffer_size() == 0 and not self.process.dead:
            self._paused = False
            self.process.loop.call_soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._paused and not self._lost:
            self.protocol.resume_writing()

    def _lose(self, error: BaseException | None) -> None:
        if not self._lost:
            self._lost = True
            self.network.forget(self)
            if self.protocol is not None:
                self.protocol.connection_lost(error)


class Network:
    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.stream("network")
        self.numbers = itertools.count(1000)
        self.hosts: dict[str, Host] = {}
        self.servers: dict[tuple[str, int], SimulatedServer] = {}
        self.cuts: set[tuple[str, str]] = set()
        """Directions in which nothing arrives, by the names of hosts."""
        self.delays: dict[tuple[str, str], float] = {}
        self._waiting: list[tuple[SimulatedTransport, int, bytes | BaseException | None]] = []
        self._transports: dict[int, SimulatedTransport] = {}
        self._ports = itertools.count(40_000)

    # What a process asks

    def bind(self, host: str, port: int) -> SimulatedSocket:
        return SimulatedSocket(self, (host, port))

    def listen(
        self, process: Process, socket: SimulatedSocket, factory: Callable[[], asyncio.BaseProtocol]
    ) -> SimulatedServer:
        server = SimulatedServer(self, process, socket.getsockname(), factory)
        self.servers[socket.getsockname()] = server
        return server

    async def connect(
        self, process: Process, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol]
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        there, here = self.hosts[host], process.host
        while not (  # noqa: ASYNC110
            there.up and self.whole(here, there) and self.whole(there, here)
        ):
            await asyncio.sleep(0.05 + 0.05 * self.random.random())  # SYN after SYN
        await asyncio.sleep(self._delay(here, there) + self._delay(there, here))
        server = self.servers.get((host, port))
        if server is None or server.process.dead:
            raise ConnectionRefusedError(f"Connect call failed {(host, port)}")
        address = here.address, next(self._ports)
        mine = SimulatedTransport(self, process, SimulatedSocket(self, address), (host, port))
        theirs = SimulatedTransport(self, server.process, SimulatedSocket(self, (host, port)), address)
        mine.peer, theirs.peer = theirs, mine
        mine.name = f"{process.name}:{address[1]}>{server.process.name}"
        theirs.name = f"{server.process.name}>{process.name}:{address[1]}"
        for end in (mine, theirs):
            self._transports[end.socket.fileno()] = end
        mine.protocol = factory()
        server.process.loop.call_soon(self._accept, server, theirs)
        mine.protocol.connection_made(mine)
        return mine, mine.protocol

    def _accept(self, server: SimulatedServer, end: SimulatedTransport) -> None:
        end.protocol = server.factory()
        end.protocol.connection_made(end)
        end._read_soon()

    # What happens to bytes

    def _delay(self, source: Host, target: Host) -> float:
        mean = self.delays.get((source.name, target.name), DELAY)
        return mean * (0.3 + self.random.expovariate(1.0))

    def whole(self, source: Host, target: Host) -> bool:
        return (source.name, target.name) not in self.cuts

    def send(self, end: SimulatedTransport, what: bytes | BaseException | None) -> None:
        if end.silent or end.peer.silent:
            if end.process.host.up and end.peer.process.host.up:
                # The host was booted and knows nothing of this connection.
                self.world.after(2 * DELAY, end.deliver, ConnectionResetError("Connection reset by peer"))
            return
        if isinstance(what, bytes) and len(what) > 1 and self.random.random() < 0.03:
            middle = self.random.randrange(1, len(what))
            self._send(end, what[:middle])
            what = what[middle:]
        self._send(end, what)

    def _send(self, end: SimulatedTransport, what: bytes | BaseException | None) -> None:
        end.sent += 1
        self._send_piece(end, end.sent, what)

    def _send_piece(self, end: SimulatedTransport, number: int, what: bytes | BaseException | None) -> None:
        delay = self._delay(end.process.host, end.peer.process.host)
        self.world.after(delay, self._arrive, end, number, what)

    def _arrive(self, end: SimulatedTransport, number: int, what: bytes | BaseException | None) -> None:
        """Whatever overtook another piece of its connection waits for it."""
        target = end.peer
        if end.silent or target.silent:
            return
        if self.cuts and not self.whole(end.process.host, target.process.host):
            self._waiting.append((end, number, what))
            return
        end.early[number] = what
        while end.arrived + 1 in end.early:
            end.arrived += 1
            piece = end.early.pop(end.arrived)
            self._trace(end, piece)
            target.deliver(piece)

    def _trace(self, end: SimulatedTransport, what: bytes | BaseException | None) -> None:
        size = f"{len(what)} bytes" if isinstance(what, bytes) else "closed" if what is None else "reset"
        self.world.trace(f"{end.name} {size}")

    def send_past_transport(self, descriptor: int, data: bytes | bytearray) -> int:
        end = self._transports.get(descriptor)
        if end is None:
            raise BrokenPipeError("the connection is closed")
        room = WINDOW - end._underway
        if room <= 0:
            raise BlockingIOError
        end.write(data[:room])
        return min(room, len(data))

    # What is done to it

    def cut(self, *directions: tuple[str, str]) -> None:
        self.cuts |= set(directions)

    def heal(self, *directions: tuple[str, str]) -> None:
        """These directions, or all."""
        self.cuts -= set(directions) if directions else set(self.cuts)
        waiting, self._waiting = self._waiting, []
        for end, number, what in waiting:
            if self.whole(end.process.host, end.peer.process.host):
                self._send_piece(end, number, what)
            else:
                self._waiting.append((end, number, what))

    def reset(self, first: Host, second: Host) -> None:
        """Connections between two hosts break."""
        for end in list(self._transports.values()):
            if end.process.host is first and end.peer.process.host is second:
                for each in (end, end.peer):
                    each.deliver(ConnectionResetError("Connection reset by peer"))
                    each._inbox.clear()

    def process_died(self, process: Process) -> None:
        """Its kernel closes its sockets, if its host has power."""
        for address in [address for address, server in self.servers.items() if server.process is process]:
            del self.servers[address]
        for end in [end for end in self._transports.values() if end.process is process]:
            if process.host.up:
                end._closing = True
                self.send(end, ConnectionResetError("Connection reset by peer"))
            else:
                end.silent = True
            self.forget(end)

    def booted(self, host: Host) -> None:
        """Its peers find out when they next send, or by their keepalives."""
        for end in list(self._transports.values()):
            if end.peer.silent and end.peer.process.host is host:
                self.world.after(
                    self.random.uniform(0.5, 20.0),
                    end.deliver,
                    ConnectionResetError("Connection reset by peer"),
                )

    def forget(self, end: SimulatedTransport) -> None:
        self._transports.pop(end.socket.fileno(), None)
