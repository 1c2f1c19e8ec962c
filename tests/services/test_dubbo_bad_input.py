"""dubbo:// and whatever arrives: each mistake gets Dubbo's own status and message, and the provider goes on."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from headrace.services import (
    URL,
    Bootstrap,
    JavaObject,
    ProtocolConfig,
    RpcException,
    interface,
)
from headrace.services.hessian2 import Decoder, Encoder, Period, encode
from headrace.services.interface import describe
from headrace.services.protocols.dubbo.codec import supports_reply_attachments
from headrace.services.protocols.dubbo.frame import HEADER, Status


@dataclass
class Tree:
    """No Java class: consumers send it as whatever they have."""

    branches: list[Tree] = field(default_factory=list)


@interface("com.acme.Shop")
class Shop:
    """What the tests call."""

    def echo(self, value: object) -> object:
        return value

    async def sleepy(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "awake"

    def block(self, seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    def unsendable(self) -> object:
        return threading.Lock()

    def too_long(self) -> object:
        return Period(years=2**40)

    def plant(self, tree: Tree) -> int:
        return len(tree.branches)


@pytest.fixture
def export(application: Callable[..., Bootstrap]) -> Callable[..., URL]:
    """Export a Shop and give its URL."""

    def make(protocol: dict[str, object] | None = None, **settings: object) -> URL:
        given = ProtocolConfig(host="127.0.0.1", port=-1, **(protocol or {}))  # type: ignore[arg-type]
        app = application("provider", protocol=given)
        config = app.service(Shop(), scope="remote", **settings)
        app.start()
        return config.urls[0]

    return make


@pytest.fixture
def consumer(application: Callable[..., Bootstrap]) -> Bootstrap:
    return application("consumer")


def raw(url: URL) -> socket.socket:
    peer = socket.create_connection((url.host or "", url.port), timeout=10)
    peer.settimeout(10)
    return peer


def read_frame(peer: socket.socket) -> tuple[bytes, bytes]:
    head = receive(peer, 16)
    return head, receive(peer, HEADER.unpack(head)[4])


def receive(peer: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = peer.recv(count - len(data))
        assert piece, "the provider closed the connection"
        data += piece
    return data


def request(
    method: str = "echo",
    types: str = "Ljava/lang/Object;",
    arguments: tuple[object, ...] = ("hi",),
    *,
    path: str = "com.acme.Shop",
    version: str = "0.0.0",
    attachments: dict[str, object] | None = None,
    request_id: int = 1,
    dubbo: str = "2.0.2",
) -> bytes:
    encoder = Encoder()
    encoder.encode_many(
        (dubbo, path, version, method, types, *arguments, {"path": path, **(attachments or {})})
    )
    body = encoder.getvalue()
    return HEADER.pack(0xDABB, 0xC2, 0, request_id, len(body)) + body


def answer(peer: socket.socket) -> tuple[Status, object]:
    head, body = read_frame(peer)
    return Status(HEADER.unpack(head)[2]), Decoder(body).decode()


def assert_alive(peer: socket.socket) -> None:
    peer.sendall(request(request_id=99))
    head, body = read_frame(peer)
    assert HEADER.unpack(head)[2:4] == (20, 99)
    decoder = Decoder(body)
    assert (decoder.decode(), decoder.decode()) == (4, "hi")


def test_a_plain_request_is_answered_with_value_and_attachments(export: Callable[..., URL]) -> None:
    with raw(export()) as peer:
        peer.sendall(request())
        _, body = read_frame(peer)
        decoder = Decoder(body)
        assert [decoder.decode() for _ in range(3)] == [4, "hi", {"dubbo": "2.0.2"}]


def test_an_old_consumer_gets_no_attachments(export: Callable[..., URL]) -> None:
    with raw(export()) as peer:
        peer.sendall(request(dubbo="2.5.3"))
        assert read_frame(peer)[1] == b"\x91" + encode("hi")


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("2.0.2", True),
        ("2.0.10", False),
        ("2.6.2", False),
        ("2.6.3", True),
        ("2.7.3", True),
        ("2.8.4", False),
        ("", False),
        ("x", False),
        ("3.0", False),
        ("3.0.0", True),
    ],
)
def test_which_consumers_read_reply_attachments(version: str, supported: bool) -> None:
    assert supports_reply_attachments(version) is supported


def twice_each(levels: int) -> list[object]:
    """Lists that each hold the one before twice: a small body, and without end when it is unfolded."""
    value: list[object] = [1]
    for _ in range(levels):
        value = [value, value]
    return value


CASES: list[tuple[bytes, Status, str]] = [
    (request(path="com.acme.Nothing"), Status.SERVICE_ERROR, "Not found exported service: com.acme.Nothing:"),
    (request(version="3"), Status.SERVICE_ERROR, "may be version or group mismatch"),
    (
        request(attachments={"group": "g"}),
        Status.SERVICE_ERROR,
        "Not found exported service: g/com.acme.Shop:",
    ),
    (request("fly", "", ()), Status.SERVICE_ERROR, 'Not found method "fly" in class Shop.'),
    (
        request("sleepy", "Ljava/lang/String;", ("soon",)),
        Status.SERVICE_ERROR,
        "the argument 'seconds' does not fit",
    ),
    (
        request("echo", "", ()),
        Status.SERVICE_ERROR,
        "echo takes 1 argument, 0 sent: echo(java.lang.Object value)",
    ),
    (request("unsendable", "", ()), Status.BAD_RESPONSE, "Failed to send response: unsendable"),
    (request("tooLong", "", ()), Status.BAD_RESPONSE, "A Period cannot be sent"),
    (
        request(path="com.acme.Nowhere", arguments=(twice_each(100),)),
        Status.BAD_REQUEST,
        "refers to its own parts",
    ),
    (
        request(path="com.acme.Nowhere", arguments=(twice_each(18),)),
        Status.SERVICE_ERROR,
        "Not found exported service: com.acme.Nowhere",
    ),
    (
        request(path="com.acme." + "x" * 1_000_000),
        Status.SERVICE_ERROR,
        "Not found exported service: com.acme.xxx",
    ),
    (
        request(path="com.acme.Nowhere", attachments={"group": ["a", "list"], "version": {"a": "map"}}),
        Status.SERVICE_ERROR,
        "Not found exported service: com.acme.Nowhere:",
    ),
    (request(types="Lbroken"), Status.BAD_REQUEST, "The parameters' types cannot be read"),
    (request(types="Q"), Status.BAD_REQUEST, "unknown letter 'Q'"),
    (
        HEADER.pack(0xDABB, 0xC2, 0, 1, 3) + b"\x90\x90\x90",
        Status.BAD_REQUEST,
        "Fail to decode request due to",
    ),
    (HEADER.pack(0xDABB, 0xC2, 0, 1, 0), Status.BAD_REQUEST, "Fail to decode request due to"),
    (
        HEADER.pack(0xDABB, 0xC3, 0, 1, 1) + b"N",
        Status.BAD_REQUEST,
        "Unexpected serialization id:3 received from network",
    ),
    (
        HEADER.pack(0xDABB, 0xC2, 0, 1, 9_000_000) + b"x" * 9_000_000,
        Status.BAD_REQUEST,
        "Data length too large: 9000000",
    ),
    (HEADER.pack(0xDABB, 0xC2, 0, 1, -5), Status.BAD_REQUEST, "Data length too large: -5"),
]


@pytest.mark.parametrize(("data", "status", "said"), CASES, ids=[case[2] for case in CASES])
def test_bad_requests_get_dubbos_status_and_message_and_the_connection_goes_on(
    export: Callable[..., URL], data: bytes, status: Status, said: str
) -> None:
    with raw(export()) as peer:
        peer.sendall(data)
        got, message = answer(peer)
        assert got == status
        assert said in str(message)
        assert_alive(peer)


def test_deep_nesting_is_refused(export: Callable[..., URL]) -> None:
    body = Encoder()
    body.encode_many(("2.0.2", "com.acme.Shop", "0.0.0", "echo", "Ljava/lang/Object;"))
    nested = body.getvalue() + b"\x79" * 5000 + b"\x78" + b"HZ"
    with raw(export()) as peer:
        peer.sendall(HEADER.pack(0xDABB, 0xC2, 0, 1, len(nested)) + nested)
        status, message = answer(peer)
        assert status == Status.BAD_REQUEST
        assert "nested" in str(message)
        assert_alive(peer)


def test_classes_that_do_not_exist_here_are_only_data(export: Callable[..., URL]) -> None:
    stranger = JavaObject("com.evil.Gadget", {"command": "rm"})
    with raw(export()) as peer:
        peer.sendall(request(arguments=(stranger,)))
        decoder = Decoder(read_frame(peer)[1])
        assert (decoder.decode(), decoder.decode()) == (4, stranger)


def test_a_reply_beyond_the_payload_is_refused(consumer: Bootstrap) -> None:
    class Big:
        def much(self, count: int) -> str:
            return "x" * count

    provider = Bootstrap(
        "p", protocol=ProtocolConfig(host="127.0.0.1", port=-1, payload=1000), runtime=consumer.runtime
    )
    config = provider.service(Big(), scope="remote")
    provider.start()
    proxy = consumer.reference(Big, url=config.urls[0].identity, retries=0)
    assert len(proxy.much(900)) == 900
    with pytest.raises(RpcException, match="Data length too large"):
        proxy.much(2000)
    assert len(proxy.much(10)) == 10


def test_frames_may_come_in_any_pieces(export: Callable[..., URL]) -> None:
    with raw(export()) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request(request_id=5):
            peer.sendall(bytes([byte]))
        assert HEADER.unpack(read_frame(peer)[0])[3] == 5
        peer.sendall(request(request_id=6) + request(request_id=7) + request(request_id=8)[:20])
        peer.sendall(request(request_id=8)[20:])
        assert {HEADER.unpack(read_frame(peer)[0])[3] for _ in range(3)} == {6, 7, 8}


def test_somebody_typing_at_the_port_gets_a_prompt(export: Callable[..., URL]) -> None:
    with raw(export()) as peer:
        peer.sendall(b"ls\r\n")
        assert receive(peer, 21) == b"com.acme.Shop\r\ndubbo>"
        peer.sendall(b"fly me\r\n")
        text = b""
        while b"Unsupported command: fly" not in text:
            text += peer.recv(100)
        assert_alive_after_text(peer)


def assert_alive_after_text(peer: socket.socket) -> None:
    peer.sendall(request(request_id=99))
    data = b""
    while b"\xda\xbb" not in data:
        data += peer.recv(1000)
    start = data.index(b"\xda\xbb")
    assert struct.unpack(">q", data[start + 4 : start + 12]) == (99,)


def test_garbage_without_end_closes_the_connection_only(export: Callable[..., URL]) -> None:
    url = export()
    with raw(url) as peer:
        try:
            peer.sendall(b"\x01" * 100_000)
            while peer.recv(1000):
                pass
        except ConnectionResetError:
            pass
    with raw(url) as peer:
        assert_alive(peer)


def test_more_connections_than_accepted_are_closed(export: Callable[..., URL]) -> None:
    url = export(protocol={"accepts": 1})
    with raw(url) as first:
        assert_alive(first)
        with raw(url) as second:
            assert second.recv(1) == b""
        assert_alive(first)


def test_a_consumer_that_does_not_read_is_not_served_for_ever(export: Callable[..., URL]) -> None:
    url = export()
    big = request(arguments=("x" * 100_000,))
    with raw(url) as greedy:
        greedy.settimeout(1)
        with pytest.raises(TimeoutError):  # its requests are no longer taken
            greedy.sendall(big * 2000)
        with raw(url) as other:
            assert_alive(other)


# -- silence --------------------------------------------------------------------------------------------------


def test_a_silent_peer_is_asked_and_then_left(export: Callable[..., URL]) -> None:
    url = export(protocol={"heartbeat": 100})
    with socket.create_connection((url.host or "", url.port)) as quiet:
        quiet.settimeout(5)
        beat = quiet.recv(64)  # the provider asks whether we are there
        magic, flags, _, request_id, length = HEADER.unpack(beat[:16])
        assert (magic, flags & 0xE0, length) == (0xDABB, 0xE0, 1)
        quiet.sendall(HEADER.pack(0xDABB, 0x22, 20, request_id, 1) + b"N")
        received = quiet.recv(4096)
        while received:  # we say nothing more, so it closes
            received = quiet.recv(4096)


def test_a_heartbeat_is_answered(export: Callable[..., URL]) -> None:
    with raw(export()) as peer:
        peer.sendall(HEADER.pack(0xDABB, 0xE2, 0, 77, 1) + b"N")
        assert HEADER.unpack(read_frame(peer)[0]) == (0xDABB, 0x22, 20, 77, 1)


def test_the_attachments_say_which_service_is_meant(export: Callable[..., URL]) -> None:
    with raw(export(version="7", group="g", path="other")) as peer:
        peer.sendall(request(attachments={"path": "other", "version": "7", "group": "g"}))
        decoder = Decoder(read_frame(peer)[1])
        assert (decoder.decode(), decoder.decode()) == (4, "hi")


def test_an_argument_nested_without_end_is_one_sentence() -> None:
    tree: dict[str, object] = {"branches": []}
    for _ in range(1000):
        tree = {"branches": [tree]}
    with pytest.raises(TypeError, match="the argument 'tree' is nested too deeply"):
        describe(Shop).methods["plant"].convert([tree])


def test_names_from_the_wire_are_not_kept(consumer: Bootstrap) -> None:
    app = Bootstrap("p", protocol=ProtocolConfig(host="127.0.0.1", port=-1), runtime=consumer.runtime)
    config = app.service(Shop(), scope="remote", executes=5)
    app.start()
    with raw(config.urls[0]) as peer:
        for number in range(20):
            peer.sendall(request(f"invented{number}", "", ()))
            assert answer(peer)[0] == Status.SERVICE_ERROR
        assert_alive(peer)
    assert not config._exporters[0].invoker.active
