"""HTTP/1.1 as rest:// speaks it, byte by byte: what clients may send, what servers may answer, and what is refused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headrace.services import Bootstrap, ProtocolConfig, RpcException, interface
from headrace.services.protocols.rest.http import MAX_HEAD, HttpRequest, RequestReader, Unreadable

BODY = b'["tea"]'
PLAIN = b"POST /com.acme.Echo/say HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n" + BODY
UPGRADE = (
    b"POST /com.acme.Echo/say HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nHost: x\r\n"
    b"HTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\nContent-Length: 7\r\n\r\n" + BODY
)
CHUNKED = (
    b"POST /com.acme.Echo/say HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: Host\r\n\r\n"
    b'3\r\n["t\r\n4;x=y\r\nea"]\r\n0\r\nHost: other\r\n\r\n'
)


@interface("com.acme.Echo")
class Echo:
    def say(self, text: str) -> str:
        return text


@pytest.fixture
def port(application: Callable[..., Bootstrap]) -> int:
    app = application(protocol=ProtocolConfig(name="rest", host="127.0.0.1", port=-1))
    config = app.service(Echo(), scope="remote")
    app.start()
    return config.urls[0].port


def read(*pieces: bytes, max_body: int = 1000) -> list[HttpRequest | Unreadable]:
    reader = RequestReader(max_body)
    return [message for piece in pieces for message in reader.feed(piece)]


def talk(port: int, data: bytes, *, until: bytes = b"") -> bytes:
    """What the server answers to these bytes, to its last one or up to `until`."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        peer.sendall(data)
        while not until or until not in answer:
            piece = peer.recv(65536)
            if not piece:
                break
            answer += piece
    return answer


# -- reading requests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [PLAIN, UPGRADE, CHUNKED], ids=["plain", "upgrade", "chunked"])
def test_requests_are_the_same_however_their_bytes_are_cut(data: bytes) -> None:
    whole = read(data * 3)
    assert [(r.method, r.target, r.body) for r in whole if isinstance(r, HttpRequest)] == [
        ("POST", "/com.acme.Echo/say", BODY)
    ] * 3
    for cut in range(1, len(data)):
        assert read(data[:cut], data[cut:] + data, data) == whole
    assert read(*(bytes([byte]) for byte in data * 3)) == whole


def test_a_trailer_does_not_replace_a_header() -> None:
    (request,) = read(CHUNKED)
    assert isinstance(request, HttpRequest)
    assert request.headers["host"] == "x"


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
    ],
)
def test_the_client_says_whether_the_connection_is_kept(head: bytes, kept: bool) -> None:
    (request,) = read(head)
    assert isinstance(request, HttpRequest)
    assert request.keep_alive is kept


def test_only_a_request_without_its_body_awaits_continue() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
    reader = RequestReader(1000)
    reader.feed(head)
    assert not reader.awaits_continue
    reader.feed(b"1\r\n\r\n")
    assert reader.awaits_continue
    reader.feed(b"x")
    assert not reader.awaits_continue
    reader.feed(head + b"0\r\n\r\n")
    assert not reader.awaits_continue


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1001, 413),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    ],
)
def test_the_requests_before_a_bad_one_are_read_and_none_after_it(data: bytes, status: int) -> None:
    before, refusal = read(PLAIN + data, PLAIN)
    assert isinstance(before, HttpRequest)
    assert isinstance(refusal, Unreadable)
    assert refusal.status == status


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"GET / HTTP/1.1\r\nX"])
def test_an_endless_head_is_refused(start: bytes) -> None:
    reader = RequestReader(1000)
    assert len(reader.feed(PLAIN * 2000 + start)) == 2000
    for _ in range(MAX_HEAD // 1000):
        assert reader.feed(b"a" * 1000) == []
    (refusal,) = reader.feed(b"a" * 1000)
    assert isinstance(refusal, Unreadable)
    assert refusal.status == 431


# -- the server ----------------------------------------------------------------------------------------------


def test_a_client_that_offers_to_upgrade_is_served(port: int) -> None:
    assert talk(port, UPGRADE + PLAIN, until=b'"tea"HTTP/1.1 200 ').startswith(b"HTTP/1.1 200 ")


def test_a_client_that_asks_before_it_sends_its_body_is_told_to_go_on(port: int) -> None:
    head, _, body = PLAIN.replace(b"Host: x", b"Host: x\r\nExpect: 100-continue").partition(b"\r\n\r\n")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        peer.sendall(head + b"\r\n\r\n")
        assert peer.recv(1000) == b"HTTP/1.1 100 \r\n\r\n"
        peer.sendall(body)
        assert peer.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_head_is_answered_without_a_body(port: int) -> None:
    answer = talk(port, b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in head
    assert body == b""


def test_a_bad_request_is_answered_after_those_before_it_and_ends_the_connection(port: int) -> None:
    answer = talk(port, PLAIN * 2 + b"nonsense\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert b"HTTP/1.1 400 " in answer.partition(b'"tea"HTTP/1.1 200')[2]
    assert b'{"error": {"type": "BadRequest"' in answer


# -- the client ----------------------------------------------------------------------------------------------


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server that answers one request and closes."""

    def serve() -> None:
        peer, _ = server.accept()
        with peer:
            data = b""
            while not data.endswith(b"]"):
                data += peer.recv(1000)
            peer.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(20)


def echo(application: Callable[..., Bootstrap], port: int, **settings: object) -> Echo:
    return application().reference(
        Echo, url=f"rest://127.0.0.1:{port}", cluster="failfast", lazy=True, timeout=20_000, **settings
    )


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"tea"',
        b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"tea"',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n"t\r\n3\r\nea"\r\n0\r\n\r\n',
        b'HTTP/1.1 200 OK\r\n\r\n"tea"',
        b'HTTP/1.0 200 OK\r\n\r\n"tea"',
    ],
    ids=["length", "continue", "chunked", "to the end", "HTTP/1.0"],
)
def test_answers_are_read_in_every_form(application: Callable[..., Bootstrap], answer: bytes) -> None:
    with answering(answer) as port:
        proxy = echo(application, port)
        assert proxy.say("tea") == "tea"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "cause: closed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "cause: closed"),
        (b"SSH-2.0-OpenSSH\r\n", "cause: Expected HTTP/"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789", "the answer has more than 8 bytes"),
    ],
    ids=["nothing", "half", "not HTTP", "too much"],
)
def test_a_bad_answer_is_an_error(application: Callable[..., Bootstrap], answer: bytes, said: str) -> None:
    with answering(answer) as port, pytest.raises(RpcException, match=said):
        echo(application, port, parameters={"payload": "8"}).say("tea")
