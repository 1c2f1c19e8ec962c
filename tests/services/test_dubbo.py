"""dubbo:// between Python's own ends: values, exceptions, attachments, generic calls, timeouts, heartbeats."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

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
    reply_attachments,
)
from headrace.services.generic import generalize
from headrace.services.hessian2 import Hessian2Error, decode, encode
from headrace.services.protocols.dubbo.client import ExchangeClient
from headrace.services.protocols.dubbo.frame import HEADER


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


@java_class("com.acme.Article")
@dataclass(frozen=True)
class Article:
    name: str


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


@pytest.mark.parametrize("dispatcher", ["all", "direct"])
def test_an_exit_or_a_cancellation_in_a_method_is_answered_and_the_provider_goes_on(
    application: Callable[..., Bootstrap], consumer: Bootstrap, dispatcher: str
) -> None:
    class Rash:
        def leave(self) -> None:
            sys.exit(3)

        async def leave_later(self) -> None:
            await asyncio.sleep(0)
            sys.exit(4)

        async def wait_for_what_was_cancelled(self) -> None:
            task = asyncio.ensure_future(asyncio.sleep(60))
            task.cancel()
            await task

    app = application("p")
    config = app.service(Rash(), scope="remote", dispatcher=dispatcher)
    app.start()
    rash = cast(
        Any,
        consumer.runtime.run(
            ReferenceConfig(interface=Rash, url=config.urls[0].identity, runtime=consumer.runtime).get_async()
        ),
    )
    for method, said in (
        ("leave", "SystemExit"),
        ("leave_later", "SystemExit(4)"),
        ("wait_for_what_was_cancelled", "CancelledError()"),
    ):
        with pytest.raises(JavaException) as raised:
            consumer.runtime.run(getattr(rash, method)())
        assert raised.value.class_name == "java.lang.RuntimeException"
        assert said in str(raised.value)


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


def test_a_lazy_reference_connects_with_its_first_call(
    export: Callable[..., URL], consumer: Bootstrap
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = f"dubbo://127.0.0.1:{server.getsockname()[1]}"
    lazy = consumer.reference(Shop, url=nobody, lazy=True, retries=0)
    with pytest.raises(RpcException, match="Connection refused"):
        lazy.echo(1)
    assert consumer.reference(Shop, url=f"dubbo://{export().address}", lazy=True).echo(1) == 1


def test_many_threads_may_ask_for_a_service_first(export: Callable[..., URL], consumer: Bootstrap) -> None:
    reference = ReferenceConfig(interface=Shop, url=f"dubbo://{export().address}", runtime=consumer.runtime)
    found: list[Shop] = []
    threads = [threading.Thread(target=lambda: found.append(reference.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


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


def test_what_refers_to_itself_still_does_as_maps() -> None:
    loop = JavaObject("com.acme.Node", {"name": "a"})
    loop.fields["next"] = loop
    node = generalize([loop, loop, {"k": Colour.RED}])
    assert isinstance(node, list)
    assert node[0] is node[1]
    assert node[0]["next"] is node[0]
    assert node[0]["class"] == "com.acme.Node"
    assert node[2] == {"k": "RED"}


def test_sets_and_maps_of_beans_without_their_classes() -> None:
    article = Article("tea")
    whole = decode(encode(generalize({article})))
    assert whole == [{"class": "com.acme.Article", "name": "tea"}]
    assert generalize({1, 2}) == {1, 2}
    with pytest.raises(Hessian2Error, match="a Article as key"):
        generalize({article: 1})


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


# -- the consumer's own bad input ----------------------------------------------------------------------------


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


async def test_a_connection_that_comes_after_the_end_is_closed() -> None:
    ended: asyncio.Queue[bytes] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.put_nowait(await reader.read())
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        client = ExchangeClient(asyncio.get_running_loop(), URL("dubbo", "127.0.0.1", port, "com.acme.Shop"))
        connecting = asyncio.ensure_future(client.connect())
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(RpcException, match="is closed"):
            await connecting
        assert await asyncio.wait_for(ended.get(), 20) == b""
        assert not client.is_connected


def test_nobody_listening_is_one_sentence(consumer: Bootstrap) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RpcException, match=f"Failed to connect to server 127.0.0.1:{port}"):
        consumer.reference(Shop, url=f"dubbo://127.0.0.1:{port}")
    proxy = consumer.reference(Shop, url=f"dubbo://127.0.0.1:{port}?check=false", check=False, retries=0)
    with pytest.raises(RpcException):
        proxy.echo(1)


def test_a_host_that_does_not_answer_costs_a_call_its_timeout_and_no_more(consumer: Bootstrap) -> None:
    """A full backlog drops what knocks, as a firewall does; connecting would take `connect.timeout`, an hour here."""
    with socket.socket() as server, contextlib.ExitStack() as knocking:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            peer = knocking.enter_context(socket.socket())
            peer.setblocking(False)
            peer.connect_ex(server.getsockname())
        proxy = consumer.reference(
            Shop,
            url=f"dubbo://127.0.0.1:{server.getsockname()[1]}?lazy=true&connect.timeout=3600000",
            check=False,
            retries=0,
            timeout=300,
            methods=[MethodConfig(name="echo", async_=True)],
        )
        calls = [cast("Future[object]", proxy.echo(number)) for number in range(3)]
        for call in calls:
            with pytest.raises(RpcException, match="within the call's timeout of 300 ms") as error:
                call.result(60)
            assert error.value.code == RpcCode.TIMEOUT
