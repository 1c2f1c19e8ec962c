"""dubbo://: calls, exceptions, attachments, limits, and what each kind of bad input is answered with."""

from __future__ import annotations

import asyncio
import enum
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from headrace.services import (
    URL,
    Bootstrap,
    GenericService,
    JavaException,
    JavaObject,
    MethodConfig,
    ProtocolConfig,
    ReferenceConfig,
    RpcCode,
    RpcException,
    ServiceConfig,
    attach,
    current,
    interface,
    java_class,
    points,
    reply_attachments,
)
from headrace.services.filters.base import Filter
from headrace.services.hessian2 import Decoder, Encoder, encode
from headrace.services.invocation import Invocation, Result
from headrace.services.protocols.dubbo.codec import supports_reply_attachments
from headrace.services.protocols.dubbo.frame import HEADER, Status


@java_class("com.acme.Colour")
class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@java_class("com.acme.Line")
@dataclass
class Line:
    article: str
    price: Decimal
    colour: Colour = Colour.RED


@java_class("com.acme.Order")
@dataclass
class Order:
    order_id: int
    lines: list[Line]
    placed_at: datetime
    notes: dict[str, list[int]] = field(default_factory=dict)


@java_class("com.acme.OutOfStock")
class OutOfStock(Exception):
    article: str

    def __init__(self, article: str) -> None:
        super().__init__(f"no more {article}")
        self.article = article


@interface("com.acme.Shop")
class Shop:
    """What the tests call."""

    def echo(self, value: object) -> object:
        return value

    def place(self, order: Order) -> Order:
        assert isinstance(order, Order)
        assert isinstance(order.lines[0], Line)
        return order

    def fail(self, kind: str) -> None:
        if kind == "declared":
            raise OutOfStock("tea")
        if kind == "key":
            raise KeyError("nothing")
        raise RuntimeError("oops")

    async def sleepy(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "awake"

    def block(self, seconds: float) -> str:
        time.sleep(seconds)
        return threading.current_thread().name

    def context(self) -> dict[str, object]:
        call = current()
        call.reply["answered-by"] = "test"
        return {"attachments": call.attachments, "remote": call.remote_address, "method": call.method_name}

    def note(self, text: str) -> None:
        NOTES.append(text)

    def unsendable(self) -> object:
        return threading.Lock()


NOTES: list[str] = []


@pytest.fixture
def export(application: Callable[..., Bootstrap]) -> Callable[..., URL]:
    """Export a Shop and give its URL."""

    def make(protocol: dict[str, object] | None = None, **settings: object) -> URL:
        app = application("provider", protocol=ProtocolConfig(host="127.0.0.1", port=-1, **(protocol or {})))  # type: ignore[arg-type]
        config = app.service(settings.pop("ref", Shop()), interface=Shop, scope="remote", **settings)
        app.start()
        return config.urls[0]

    return make


@pytest.fixture
def consumer(application: Callable[..., Bootstrap]) -> Bootstrap:
    return application("consumer")


@pytest.fixture
def shop(export: Callable[..., URL], consumer: Bootstrap) -> Shop:
    return consumer.reference(Shop, url=f"dubbo://{export().address}", timeout=5000)


# -- calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1,
        2**31,
        2**62,
        1.5,
        "",
        "héllo 🐘",
        "x" * 70_000,
        b"",
        b"\x00" * 10_000,
        [],
        [1, "a", None],
        {"k": [1]},
    ],
)
def test_values_come_back_as_they_were(shop: Shop, value: object) -> None:
    assert shop.echo(value) == value


def test_beans_travel_as_their_own_classes(shop: Shop) -> None:
    order = Order(
        7, [Line("tea", Decimal("1.50"), Colour.BLUE)], datetime(2024, 1, 2, 3, 4, tzinfo=UTC), {"a": [1]}
    )
    assert shop.place(order) == order


def test_keyword_arguments_find_their_places(shop: Shop) -> None:
    assert shop.echo(value="x") == "x"
    with pytest.raises(TypeError, match="lacks the argument 'value'"):
        shop.echo()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no argument 'wrong'"):
        shop.echo("x", wrong=1)  # type: ignore[call-arg]


def test_a_registered_exception_arrives_as_itself(shop: Shop) -> None:
    with pytest.raises(OutOfStock, match="no more tea") as raised:
        shop.fail("declared")
    assert raised.value.article == "tea"


def test_other_exceptions_arrive_as_their_java_kin(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(JavaException) as raised:
        shop.fail("key")
    assert raised.value.class_name == "java.util.NoSuchElementException"
    assert "Got unchecked and undeclared exception which called by 127.0.0.1" in caplog.text


async def test_async_methods_are_awaited(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    url = await asyncio.to_thread(export)
    app = application()
    proxy = await app.reference_async(Shop, url=f"dubbo://{url.address}")
    answers = await asyncio.gather(*(proxy.sleepy(0.05) for _ in range(50)), proxy.echo(1))  # type: ignore[arg-type]
    assert answers == ["awake"] * 50 + [1]


def test_a_method_configured_async_returns_a_future(export: Callable[..., URL], consumer: Bootstrap) -> None:
    proxy = consumer.reference(
        Shop, url=f"dubbo://{export().address}", methods=[MethodConfig(name="echo", async_=True)]
    )
    future = proxy.echo("later")
    assert isinstance(future, Future)
    assert future.result(10) == "later"


def test_a_one_way_call_returns_at_once(
    export: Callable[..., URL], consumer: Bootstrap, eventually: Callable[..., None]
) -> None:
    NOTES.clear()
    proxy = consumer.reference(
        Shop, url=f"dubbo://{export().address}", methods=[MethodConfig(name="note", return_=False)]
    )
    assert proxy.note("hello") is None
    eventually(lambda: NOTES == ["hello"])


def test_attachments_go_both_ways(shop: Shop) -> None:
    with attach({"trace": "t1"}), attach({"user": "anna"}):
        seen = shop.context()
    assert isinstance(seen, dict)
    assert seen["attachments"] == {"trace": "t1", "user": "anna"}
    assert str(seen["remote"]).startswith("127.0.0.1:")
    assert seen["method"] == "context"
    assert reply_attachments()["answered-by"] == "test"
    assert shop.context()["attachments"] == {}  # type: ignore[index]
    shop.echo(1)
    assert "answered-by" not in reply_attachments()


def test_plain_methods_run_in_threads_and_async_ones_on_the_loop(shop: Shop) -> None:
    assert shop.block(0).startswith("DubboServerHandler-dubbo-")


def test_direct_methods_run_on_the_loop(consumer: Bootstrap) -> None:
    class Direct:
        def thread(self) -> str:
            return threading.current_thread().name

        def fail(self) -> None:
            raise ValueError("x")

    provider = Bootstrap("p", protocol=ProtocolConfig(host="127.0.0.1", port=-1), runtime=consumer.runtime)
    config = provider.service(Direct(), dispatcher="direct", scope="remote")
    provider.start()
    proxy = consumer.reference(Direct, url=config.urls[0].identity)
    assert proxy.thread() == "headrace-services"
    with pytest.raises(JavaException, match="IllegalArgument"):
        proxy.fail()


def test_several_connections_are_used_in_turn(export: Callable[..., URL], consumer: Bootstrap) -> None:
    proxy = consumer.reference(Shop, url=f"dubbo://{export().address}", connections=3)
    assert len({proxy.context()["remote"] for _ in range(9)}) == 3  # type: ignore[index]


def test_references_to_one_provider_share_a_connection(
    export: Callable[..., URL], consumer: Bootstrap
) -> None:
    url = f"dubbo://{export().address}"
    first, second = (consumer.reference(Shop, url=url) for _ in range(2))
    assert first.context()["remote"] == second.context()["remote"]  # type: ignore[index]


# -- generic and echo ----------------------------------------------------------------------------------------


def test_a_service_can_be_called_without_its_interface(
    export: Callable[..., URL], consumer: Bootstrap
) -> None:
    reference = ReferenceConfig[GenericService](
        interface="com.acme.Shop", url=f"dubbo://{export().address}", generic=True, runtime=consumer.runtime
    )
    proxy = reference.get()
    order = {
        "orderId": 1,
        "lines": [{"article": "tea", "price": "2", "colour": "BLUE"}],
        "placedAt": "2024-01-02T00:00:00+00:00",
    }
    placed = proxy.invoke("place", ["com.acme.Order"], [order])
    assert isinstance(placed, dict)
    assert placed["class"] == "com.acme.Order"
    assert placed["lines"][0]["class"] == "com.acme.Line"
    assert placed["lines"][0]["colour"] == "BLUE"
    with pytest.raises(JavaException) as raised:
        proxy.invoke("fail", ["java.lang.String"], ["declared"])
    assert raised.value.class_name == "org.apache.dubbo.rpc.service.GenericException"
    assert raised.value.fields["exceptionClass"] == "com.acme.OutOfStock"
    with pytest.raises(RpcException, match=r"No such method fly in class com\.acme\.Shop"):
        proxy.invoke("fly", [], [])


def test_a_generic_implementation_answers_typed_calls(
    application: Callable[..., Bootstrap], consumer: Bootstrap
) -> None:
    class Anything(GenericService):
        def invoke(self, method: str, parameter_types: list[str], arguments: list[object]) -> object:
            return {"method": method, "types": parameter_types, "arguments": arguments}

    app = application()
    config = app.service(ServiceConfig(interface="com.acme.Shop", ref=Anything(), scope="remote"))
    app.start()
    proxy = consumer.reference(Shop, url=f"dubbo://{config.urls[0].address}?generic=true")
    answer = proxy.echo(Line("tea", Decimal(1)))
    assert isinstance(answer, dict)
    assert answer["method"] == "echo"
    assert answer["types"] == ["java.lang.Object"]
    assert answer["arguments"][0]["class"] == "com.acme.Line"


# -- filters -------------------------------------------------------------------------------------------------


def test_calls_without_the_token_are_refused(export: Callable[..., URL], consumer: Bootstrap) -> None:
    url = export(token="secret")
    right = consumer.reference(Shop, url=f"dubbo://{url.address}?token=secret")
    assert right.echo(1) == 1
    for wrong in ("", "?token=guess"):
        with pytest.raises(
            RpcException, match=r"Invalid token! Forbid invoke remote service interface com.acme.Shop"
        ):
            consumer.reference(Shop, url=f"dubbo://{url.address}{wrong}", retries=0).echo(1)


def test_more_calls_at_once_than_allowed_are_refused(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    async def calls(url: URL) -> list[object]:
        app = application()
        proxy = await app.reference_async(Shop, url=f"dubbo://{url.address}", retries=0, timeout=5000)
        answers = await asyncio.gather(*(proxy.sleepy(0.3) for _ in range(5)), return_exceptions=True)
        assert await proxy.sleepy(0) == "awake"
        return list(answers)

    answers = asyncio.run(calls(export(methods=[MethodConfig(name="sleepy", executes=2)])))
    assert answers.count("awake") == 2
    refused = [str(a) for a in answers if isinstance(a, RpcException)]
    assert len(refused) == 3
    assert 'The service using threads greater than <dubbo:service executes="2" /> limited.' in refused[0]


def test_a_full_pool_refuses_with_dubbos_status(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    async def calls(url: URL) -> list[object]:
        app = application()
        proxy = await app.reference_async(Shop, url=f"dubbo://{url.address}", retries=0, timeout=5000)
        return list(await asyncio.gather(*(proxy.block(0.3) for _ in range(4)), return_exceptions=True))  # type: ignore[arg-type]

    answers = asyncio.run(calls(export(protocol={"threads": 1, "queues": 1})))
    refused = [str(a) for a in answers if isinstance(a, RpcException)]
    assert len(refused) == 2
    assert "threadpool is exhausted ,detail msg:Thread pool is EXHAUSTED!" in refused[0]


def test_calls_beyond_the_rate_are_refused(export: Callable[..., URL], consumer: Bootstrap) -> None:
    url = export(filter="tps", parameters={"tps": "2"})
    proxy = consumer.reference(Shop, url=f"dubbo://{url.address}", retries=0)
    assert [proxy.echo(1), proxy.echo(2)] == [1, 2]
    with pytest.raises(RpcException, match="because exceed max service tps"):
        proxy.echo(3)


def test_a_consumer_can_limit_its_own_calls(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    async def calls(url: URL) -> list[object]:
        app = application()
        proxy = await app.reference_async(
            Shop, url=f"dubbo://{url.address}", actives=1, timeout=400, retries=0
        )
        return list(await asyncio.gather(*(proxy.sleepy(0.3) for _ in range(3)), return_exceptions=True))

    answers = asyncio.run(calls(export()))
    limited = [a for a in answers if isinstance(a, RpcException) and a.code == RpcCode.LIMIT_EXCEEDED]
    assert answers[0] == "awake"
    assert len(limited) == 1


def test_the_access_log_has_a_line_a_call(
    export: Callable[..., URL], consumer: Bootstrap, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    log = tmp_path / "logs" / "access.log"
    url = export(accesslog=str(log), group="g", version="1")
    consumer.reference(Shop, url=f"dubbo://{url.address}", group="g", version="1").echo("tea")
    eventually(lambda: log.exists() and log.read_text())
    line = log.read_text()
    assert 'g/com.acme.Shop:1 echo(java.lang.Object) ["tea"]' in line
    assert "127.0.0.1:" in line


def test_slow_calls_are_told_to_the_log(
    export: Callable[..., URL],
    consumer: Bootstrap,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[..., None],
) -> None:
    url = export(timeout=10)
    proxy = consumer.reference(Shop, url=f"dubbo://{url.address}", timeout=5000)
    proxy.block(0.05)
    eventually(lambda: "invoke time out. method: block" in caplog.text)


def test_filters_can_be_added_and_removed(export: Callable[..., URL], consumer: Bootstrap) -> None:
    class Shout(Filter):
        async def invoke(self, invocation: Invocation) -> Result:
            result = await self.inner.invoke(invocation)
            return Result(str(result.value).upper())

    points.FILTERS.register("shout", Shout)
    url = export(filter="shout,-exception")
    assert consumer.reference(Shop, url=f"dubbo://{url.address}").echo("tea") == "TEA"


def test_a_deprecated_method_is_told_once(
    export: Callable[..., URL], consumer: Bootstrap, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = consumer.reference(
        Shop, url=f"dubbo://{export().address}", methods=[MethodConfig(name="echo", deprecated=True)]
    )
    proxy.echo(1)
    proxy.echo(2)
    assert caplog.text.count("com.acme.Shop.echo is DEPRECATED!") == 1


# -- timeouts and silence ------------------------------------------------------------------------------------


def test_a_slow_implementation_costs_its_caller_a_timeout_and_nobody_else(
    export: Callable[..., URL], consumer: Bootstrap
) -> None:
    proxy = consumer.reference(Shop, url=f"dubbo://{export().address}", timeout=100, retries=0)
    with pytest.raises(RpcException, match="Invoke remote method timeout") as raised:
        proxy.block(0.5)
    assert raised.value.code == RpcCode.TIMEOUT
    assert "Waiting server-side response timeout by scan timer" in str(raised.value)
    assert proxy.echo("still here") == "still here"


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


def test_heartbeats_go_both_ways_over_a_quiet_connection(
    export: Callable[..., URL],
    consumer: Bootstrap,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[..., None],
) -> None:
    caplog.set_level(logging.DEBUG, "headrace.services.dubbo")
    url = export(protocol={"heartbeat": 100, "parameters": {"heartbeat.timeout": "60000"}})
    proxy = consumer.reference(Shop, url=f"dubbo://{url.address}", parameters={"heartbeat": "150"})
    before = proxy.context()["remote"]  # type: ignore[index]
    eventually(lambda: caplog.text.count(f"Heartbeat to {before}") >= 3)
    eventually(lambda: caplog.text.count(f"Heartbeat from {url.address}, answered") >= 3)
    assert proxy.context()["remote"] == before  # type: ignore[index]


def test_a_heartbeat_is_answered(export: Callable[..., URL]) -> None:
    with raw(export()) as peer:
        peer.sendall(HEADER.pack(0xDABB, 0xE2, 0, 77, 1) + b"N")
        assert HEADER.unpack(read_frame(peer)[0]) == (0xDABB, 0x22, 20, 77, 1)


# -- bad input -----------------------------------------------------------------------------------------------


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
    (request("echo", "", ()), Status.SERVICE_ERROR, "echo takes 1 arguments, 0 were sent"),
    (request("unsendable", "", ()), Status.BAD_RESPONSE, "Failed to send response: unsendable"),
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


# -- the consumer's own bad input ----------------------------------------------------------------------------


def test_a_provider_that_answers_nonsense_costs_one_call(
    consumer: Bootstrap, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answers = iter([b"\x95", b"\x9a", b"\x93" + encode("no exception"), b"\x91"])

    def serve(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer:
            for body in answers:
                head, _ = read_frame(peer)
                request_id = HEADER.unpack(head)[3]
                peer.sendall(HEADER.pack(0xDABB, 0x02, 20, request_id, len(body)) + body)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        proxy = consumer.reference(Shop, url=f"dubbo://127.0.0.1:{server.getsockname()[1]}", retries=0)
        for _ in range(4):
            with pytest.raises(RpcException, match="Decode response failed"):
                proxy.echo(1)
        thread.join(10)


def test_a_lost_connection_fails_its_calls_at_once(consumer: Bootstrap) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                read_frame(peer)

        threading.Thread(target=serve, daemon=True).start()
        proxy = consumer.reference(
            Shop, url=f"dubbo://127.0.0.1:{server.getsockname()[1]}", retries=0, timeout=60_000
        )
        with pytest.raises(RpcException, match="Directly return the unFinished request"):
            proxy.echo(1)


def test_nobody_listening_is_one_sentence(consumer: Bootstrap) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RpcException, match=f"Failed to connect to server 127.0.0.1:{port}"):
        consumer.reference(Shop, url=f"dubbo://127.0.0.1:{port}")
    proxy = consumer.reference(Shop, url=f"dubbo://127.0.0.1:{port}?check=false", check=False, retries=0)
    with pytest.raises(RpcException):
        proxy.echo(1)
