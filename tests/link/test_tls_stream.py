"""The TLS layer under a connection: whatever the records' borders, the pace and the end, bytes arrive once, in order and in bounded memory."""

import asyncio
import itertools
import random
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.link import tls_stream
from headrace.link.tls_stream import TlsState, TlsStream
from tests.certificates import Certificates
from tests.waiting import until_async


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def contexts(certificates):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificates.broker)
    server.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_IGNORE_UNEXPECTED_EOF
    return server, ssl.create_default_context(cafile=certificates.ca)


class Wire(asyncio.Transport):
    """A socket's transport whose bytes a test moves by hand."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.reading = True
        self.closed = False

    def write(self, data):
        self.sent += data

    def writelines(self, pieces):
        for piece in pieces:
            self.write(piece)

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close

    def get_extra_info(self, name, default=None):
        return default


class Inner(asyncio.BufferedProtocol):
    """Takes what comes into a buffer of `room` bytes, and may stop taking."""

    def __init__(self, room=16384):
        self.buffer = bytearray(room)
        self.taken = bytearray()
        self.ended = self.lost = False
        self.pause_after = None

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, sizehint):
        return memoryview(self.buffer)

    def buffer_updated(self, count):
        self.taken += self.buffer[:count]
        if self.pause_after is not None and len(self.taken) >= self.pause_after:
            self.pause_after = None
            self.transport.pause_reading()

    def eof_received(self):
        self.ended = True
        return False

    def connection_lost(self, exc):
        self.lost = True


class Outcome:
    def __init__(self):
        self.open = False
        self.error = None

    def secured(self, stream):
        self.open = True

    def failed(self, stream, error):
        self.error = error


class Pair:
    """A stream of ours on the server's side and a bare SSL object as the client."""

    def __init__(self, contexts, room=16384):
        server, client = contexts
        self.inner, self.outcome, self.wire = Inner(room), Outcome(), Wire()
        self.stream = TlsStream(self.inner, server, self.outcome)
        self.stream.connection_made(self.wire)
        self.stream.begin()
        self.arriving, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(self.arriving, self.leaving, server_hostname="localhost")

    def feed(self, data, cuts=None):
        """Bytes from the client, in pieces of these sizes or as much as there is room for."""
        data = memoryview(bytes(data))
        sizes = itertools.chain(cuts or (), itertools.repeat(len(data)))
        while data:
            size = next(sizes)
            buffer = self.stream.get_buffer(-1)
            piece = data[: min(size, len(buffer))]
            buffer[: len(piece)] = piece
            self.stream.buffer_updated(len(piece))
            data = data[len(piece) :]

    async def shake(self, cuts=None):
        """The handshake, each flight cut into pieces."""
        while not self.outcome.open and self.outcome.error is None:
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                pass
            flight = self.leaving.read()
            if flight:
                self.feed(flight, cuts)
            await until_async(lambda: self.stream.state is not TlsState.COMPUTING)
            self.deliver()

    def deliver(self):
        self.arriving.write(self.wire.sent)
        self.wire.sent.clear()

    def read_all(self):
        self.deliver()
        found = bytearray()
        try:
            while data := self.client.read(65536):
                found += data
        except ssl.SSLWantReadError:
            pass
        return found

    def encrypted(self, data):
        self.client.write(data)
        return self.leaving.read()


sizes = st.lists(st.integers(1, 3000), max_size=30)


@settings(max_examples=40)
@given(
    flights=sizes,
    records=st.lists(st.binary(min_size=1, max_size=40_000), max_size=6),
    cuts=sizes,
    room=st.integers(1, 20_000),
)
def test_bytes_arrive_in_order_however_they_are_cut(contexts, flights, records, cuts, room):
    async def run():
        pair = Pair(contexts, room)
        await pair.shake(flights)
        assert pair.outcome.open
        pair.feed(b"".join(map(pair.encrypted, records)), cuts)
        assert pair.inner.taken == b"".join(records)
        for record in records:
            pair.stream.write(record)
        assert pair.read_all() == b"".join(records)

    asyncio.run(run())


@settings(max_examples=30)
@given(garbage=st.binary(min_size=1, max_size=400), keep=st.integers(0, 600))
def test_a_handshake_that_is_cut_off_or_garbled_fails_once_and_closes(contexts, garbage, keep):
    async def run():
        pair = Pair(contexts)
        with pytest.raises(ssl.SSLWantReadError):
            pair.client.do_handshake()
        hello = pair.leaving.read()
        pair.feed(hello[: min(keep, len(hello) - 1)] + garbage)
        await until_async(lambda: pair.stream.state is not TlsState.COMPUTING)
        pair.stream.connection_lost(None)
        assert not pair.outcome.open
        assert pair.outcome.error is not None
        assert pair.inner.lost
        assert not pair.inner.taken

    asyncio.run(run())


def test_the_reason_is_told_when_the_connection_ends_while_a_thread_computes(contexts):
    async def run():
        pair = Pair(contexts)
        pair.feed(b"GET / HTTP/1.1\r\n\r\n")
        assert pair.stream.state is TlsState.COMPUTING
        pair.stream.connection_lost(None)
        await until_async(lambda: pair.outcome.error is not None)
        assert isinstance(pair.outcome.error, ssl.SSLError)

    asyncio.run(run())


def test_a_protocol_that_stops_taking_gets_the_rest_when_it_goes_on(contexts):
    async def run():
        pair = Pair(contexts, 1000)
        await pair.shake()
        data = random.Random(1).randbytes(100_000)
        pair.inner.pause_after = 5000
        pair.feed(pair.encrypted(data))
        assert len(pair.inner.taken) == 5000
        assert not pair.wire.reading
        pair.stream.resume_reading()
        await until_async(lambda: pair.inner.taken == data)
        assert pair.wire.reading

    asyncio.run(run())


def test_no_more_than_the_shared_buffer_is_read_ahead(contexts):
    async def run():
        pair = Pair(contexts, 1000)
        await pair.shake()
        pair.inner.pause_after = 1
        pair.feed(pair.encrypted(bytes(80_000)))
        assert pair.stream._incoming.pending < tls_stream.CIPHERTEXT
        assert not pair.wire.reading

    asyncio.run(run())


def test_a_goodbye_ends_the_stream_after_everything_before_it(contexts):
    async def run():
        pair = Pair(contexts)
        await pair.shake()
        last = pair.encrypted(b"the last words")
        with pytest.raises(ssl.SSLWantReadError):
            pair.client.unwrap()
        pair.feed(last + pair.leaving.read() + b"more")
        assert pair.inner.taken == b"the last words"
        assert pair.inner.ended
        assert pair.wire.closed
        pair.stream.write(b"too late")
        pair.deliver()
        assert pair.client.unwrap() is None  # Our goodbye, and nothing behind it.

    asyncio.run(run())


def test_a_garbled_record_ends_the_stream(contexts):
    async def run():
        pair = Pair(contexts)
        await pair.shake()
        record = bytearray(pair.encrypted(b"x" * 100))
        record[40] ^= 1
        pair.feed(record)
        assert isinstance(pair.outcome.error, ssl.SSLError)
        assert pair.wire.closed
        assert not pair.inner.taken

    asyncio.run(run())


def test_renegotiation_is_refused(contexts, certificates):
    async def run():
        client = ssl.create_default_context(cafile=certificates.ca)
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        pair = Pair((contexts[0], client))
        await pair.shake()
        # A ClientHello where data belongs: type 22, encrypted like any record.
        pair.feed(b"\x16\x03\x03\x00\x05" + b"\x01\x00\x00\x01\x00")
        assert pair.wire.closed
        assert not pair.inner.taken

    asyncio.run(run())


def test_a_peer_that_sends_much_before_its_turn_is_not_read_on(contexts):
    async def run():
        server, _ = contexts
        inner, wire = Inner(), Wire()
        stream = TlsStream(inner, server, Outcome())
        stream.connection_made(wire)
        while wire.reading:
            stream.buffer_updated(10_000)
        assert len(stream._early) < tls_stream.MOST_EARLY + 10_000

    asyncio.run(run())


def test_large_replies_go_out_in_pieces_and_arrive_whole(contexts):
    async def run():
        pair = Pair(contexts)
        await pair.shake()
        data = random.Random(2).randbytes(3_000_000)
        pair.stream.write(data)
        assert not pair.stream._outgoing.pending
        assert pair.read_all() == data

    asyncio.run(run())
