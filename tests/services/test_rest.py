"""rest://: JSON over HTTP, between Python's own ends and for anybody with an HTTP client."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from http.client import HTTPConnection
from typing import Any

import pytest
from pydantic import BaseModel

from headrace.services import (
    URL,
    Bootstrap,
    JavaException,
    MethodConfig,
    ProtocolConfig,
    RpcCode,
    RpcException,
    attach,
    current,
    interface,
    java_class,
    reply_attachments,
)


class Size(enum.Enum):
    SMALL = 1
    LARGE = 2


@dataclass
class Item:
    article_id: int
    price: Decimal
    size: Size = Size.SMALL
    parts: list[Item] = field(default_factory=list)


class Customer(BaseModel):
    first_name: str
    age: int


class Stamp(BaseModel):
    picture: bytes


@dataclass
class Letter:
    body: bytes
    pages: list[bytes] = field(default_factory=list)
    marks: dict[str, bytes] = field(default_factory=dict)
    seal: tuple[int, bytes] | None = None
    stamp: Stamp | None = None
    enclosed: Letter | None = None


@java_class("com.acme.SoldOut")
class SoldOut(Exception):
    pass


@interface("com.acme.Catalogue")
class Catalogue:
    """A service with a bit of everything."""

    def price(self, item: Item, discount: float = 0.0) -> Decimal:
        """What an item costs."""
        return item.price * (1 - Decimal(str(discount)))

    def post(self, letter: Letter) -> Letter:
        assert isinstance(letter.body, bytes)
        return letter

    def find(self, name: str, limit: int, exact: bool = False) -> list[str]:
        return [name] * limit + ([] if exact else ["…"])

    def greet(self, customer: Customer) -> str:
        return f"{customer.first_name} ({customer.age})"

    def reverse(self, data: bytes) -> bytes:
        return data[::-1]

    def when(self, moment: datetime) -> datetime:
        return moment

    def fail(self, kind: str) -> None:
        raise SoldOut("gone") if kind == "sold" else ValueError("wrong")

    def __init__(self) -> None:
        self._meeting = threading.Barrier(30)

    async def slow(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    def meet(self) -> str:
        """Returns once thirty calls are here at the same time."""
        self._meeting.wait(60)
        return "done"

    def context(self) -> dict[str, Any]:
        current().reply["served-by"] = "tést,x"
        return current().attachments

    def unsendable(self) -> object:
        return object()


@pytest.fixture
def export(application: Callable[..., Bootstrap]) -> Callable[..., URL]:
    def make(protocol: dict[str, object] | None = None, **settings: object) -> URL:
        given = ProtocolConfig(name="rest", host="127.0.0.1", port=-1, **(protocol or {}))  # type: ignore[arg-type]
        app = application("provider", protocol=given)
        config = app.service(Catalogue(), scope="remote", **settings)
        app.start()
        return config.urls[0]

    return make


@pytest.fixture
def catalogue(export: Callable[..., URL], application: Callable[..., Bootstrap]) -> Catalogue:
    return application("consumer").reference(Catalogue, url=export().identity, timeout=5000, retries=0)


def ask(
    url: URL, path: str, body: object = None, headers: dict[str, str] | None = None, method: str = "POST"
) -> tuple[int, Any]:
    connection = HTTPConnection(url.host or "", url.port, timeout=10)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, data, headers or {})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


# -- between Python's own ends -------------------------------------------------------------------------------


def test_values_come_back_as_their_annotations_say(catalogue: Catalogue) -> None:
    assert catalogue.price(Item(1, Decimal("2.50"), Size.LARGE, [Item(2, Decimal(1))]), 0.5) == Decimal(
        "1.250"
    )
    assert catalogue.find("tea", limit=2) == ["tea", "tea", "…"]
    assert catalogue.greet(Customer(first_name="Ann", age=3)) == "Ann (3)"
    assert catalogue.reverse(b"\x00\xff") == b"\xff\x00"
    moment = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
    assert catalogue.when(moment) == moment


def test_bytes_are_bytes_again_wherever_they_are(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    url = export()
    letter = Letter(
        b"\xff\x00", [b"1", b"\xfe"], {"k": b"\xfd"}, (1, b"\xfc"), Stamp(picture=b"\xfb"), Letter(b"inner")
    )
    assert application("c").reference(Catalogue, url=url.identity).post(letter) == letter
    status, answer = ask(url, "/com.acme.Catalogue/post", {"letter": {"body": "/w==", "pages": ["§"]}})
    assert status == 400
    assert "the argument 'letter' does not fit: Bytes are declared" in answer["error"]["message"]


def test_exceptions_keep_their_names(catalogue: Catalogue) -> None:
    with pytest.raises(JavaException) as raised:
        catalogue.fail("sold")
    assert (raised.value.class_name, raised.value.message) == ("com.acme.SoldOut", "gone")
    with pytest.raises(JavaException, match=r"java\.lang\.IllegalArgumentException: wrong"):
        catalogue.fail("x")


def test_attachments_travel_in_a_header(catalogue: Catalogue) -> None:
    with attach({"trace": "a,b=c d"}):
        assert catalogue.context() == {"trace": "a,b=c d"}
    assert reply_attachments() == {"served-by": "tést,x"}


def test_a_slow_method_costs_a_timeout(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    proxy = application("c").reference(
        Catalogue, url=export().identity, retries=0, methods=[MethodConfig(name="slow", timeout=50)]
    )
    with pytest.raises(RpcException, match="Invoke remote method timeout") as raised:
        asyncio.run(proxy.slow(5.0))  # type: ignore[arg-type]
    assert raised.value.code == RpcCode.TIMEOUT
    assert proxy.find("x", 1, True) == ["x"]


async def test_many_calls_at_once(export: Callable[..., URL], application: Callable[..., Bootstrap]) -> None:
    url = await asyncio.to_thread(export)
    proxy = await application("c").reference_async(Catalogue, url=url.identity, timeout=5000)
    answers = await asyncio.gather(*(proxy.meet() for _ in range(30)))  # type: ignore[arg-type]
    assert answers == ["done"] * 30


# -- any HTTP client -----------------------------------------------------------------------------------------


def test_arguments_by_name_by_place_or_in_the_query(export: Callable[..., URL]) -> None:
    url = export()
    path = "/com.acme.Catalogue/find"
    for body in ({"name": "a", "limit": 1, "exact": True}, ["a", 1, True]):
        assert ask(url, path, body) == (200, ["a"])
    assert ask(url, f"{path}?name=a&limit=1&exact=true", method="GET") == (200, ["a"])
    assert ask(url, path, ["half a pair \ud800", 1, True]) == (200, ["half a pair \ud800"])


def test_beans_are_objects_with_camel_case_names(export: Callable[..., URL]) -> None:
    item = {"articleId": 1, "price": "3", "size": "LARGE", "parts": [{"article_id": 2, "price": 1}]}
    assert ask(export(), "/com.acme.Catalogue/price", {"item": item}) == (200, "3.0")


BAD: list[tuple[str, object, int, str]] = [
    ("/com.acme.Nothing/find", {}, 404, "there is no service 'com.acme.Nothing' here"),
    ("/com.acme.Catalogue/fly", {}, 404, "has no method 'fly'"),
    ("/com.acme.Catalogue/find", b"{", 400, "the body is not JSON"),
    ("/com.acme.Catalogue/find", b"[" * 100_000, 400, "the body is not JSON"),
    ("/com.acme.Catalogue/find", 5, 400, "a JSON object with the arguments by name"),
    ("/com.acme.Catalogue/find", {"name": "a"}, 400, "lacks the argument 'limit'"),
    ("/com.acme.Catalogue/find", {"name": "a", "limit": "many"}, 400, "the argument 'limit' does not fit"),
    ("/com.acme.Catalogue/find", {"name": "a", "limit": 1, "x": 1}, 400, "has no argument 'x'"),
    (
        "/com.acme.Catalogue/greet",
        {"customer": {"firstName": "A"}},
        400,
        "the argument 'customer' does not fit",
    ),
    ("/com.acme.Catalogue/reverse", {"data": "§"}, 400, "no base64"),
    (
        "/com.acme.Catalogue/price",
        b'{"item":' + b'{"articleId":1,"price":"1","parts":[' * 450 + b"]}" * 450 + b"}",
        400,
        "the argument 'item' is nested too deeply",
    ),
    ("/com.acme.Catalogue/find?name=a&limit=--5", None, 400, "the argument 'limit' does not fit"),
    ("/com.acme.Catalogue/fail", {"kind": "x"}, 500, "wrong"),
    ("/com.acme.Catalogue/unsendable", {}, 500, "cannot be sent"),
]


@pytest.mark.parametrize(("path", "body", "status", "said"), BAD, ids=[f"{b[2]} {b[3]}" for b in BAD])
def test_what_is_wrong_is_said_in_json(
    export: Callable[..., URL], path: str, body: object, status: int, said: str
) -> None:
    got, answer = ask(export(), path, body, method="GET" if body is None else "POST")
    assert got == status
    assert said in answer["error"]["message"]


def test_other_verbs_are_refused(export: Callable[..., URL]) -> None:
    assert ask(export(), "/com.acme.Catalogue/find", method="DELETE")[0] == 405


def test_a_token_is_wanted_as_bearer(export: Callable[..., URL]) -> None:
    url = export(token="secret")
    path, body = "/com.acme.Catalogue/find", ["a", 1, True]
    assert ask(url, path, body)[0] == 401
    assert ask(url, path, body, {"Authorization": "Bearer secret"}) == (200, ["a"])
    assert ask(url, path, body, {"Dubbo-Attachments": "token=secret"}) == (200, ["a"])


def test_calls_beyond_the_rate_are_429(export: Callable[..., URL]) -> None:
    url = export(filter="tps", parameters={"tps": "1"})
    path, body = "/com.acme.Catalogue/find", ["a", 1, True]
    assert [ask(url, path, body)[0] for _ in range(2)] == [200, 429]


def test_too_many_at_once_is_429_and_a_full_pool_503(export: Callable[..., URL]) -> None:
    url = export(executes=1, methods=[MethodConfig(name="slow", executes=1)])
    busy = HTTPConnection(url.host or "", url.port, timeout=10)
    busy.request("POST", "/com.acme.Catalogue/slow", b"[0.5]")
    deadline = time.monotonic() + 10
    while ask(url, "/com.acme.Catalogue/slow", [0.01])[0] != 429:
        assert time.monotonic() < deadline
    assert json.loads(busy.getresponse().read()) == "done"
    busy.close()


def test_versions_are_told_apart_by_attachments(application: Callable[..., Bootstrap]) -> None:
    app = application(protocol=ProtocolConfig(name="rest", host="127.0.0.1", port=-1))
    for version in ("1", "2"):
        app.service(Catalogue(), scope="remote", version=version)
    app.start()
    url = app.services[0].urls[0]
    path, body = "/com.acme.Catalogue/find", ["a", 1, True]
    assert ask(url, path, body)[0] == 404
    assert ask(url, path, body, {"Dubbo-Attachments": "version=2"}) == (200, ["a"])


def test_the_port_describes_itself(export: Callable[..., URL]) -> None:
    status, document = ask(export(), "/openapi.json", method="GET")
    assert status == 200
    assert document["openapi"] == "3.1.0"
    price = document["paths"]["/com.acme.Catalogue/price"]["post"]
    assert price["summary"] == "What an item costs."
    schema = price["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["item"]
    (name,) = [key for key in document["components"]["schemas"] if key.endswith("Item")]
    item = document["components"]["schemas"][name]
    assert item["properties"]["articleId"] == {"type": "integer"}
    assert item["properties"]["parts"]["items"] == {"$ref": f"#/components/schemas/{name}"}
    (size,) = [key for key in document["components"]["schemas"] if key.endswith("Size")]
    assert document["components"]["schemas"][size]["enum"] == ["SMALL", "LARGE"]


def test_requests_may_follow_each_other_on_one_connection(export: Callable[..., URL]) -> None:
    url = export()
    request = b'POST /com.acme.Catalogue/find HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n["a",1,true]'
    with socket.create_connection((url.host or "", url.port), timeout=10) as peer:
        peer.sendall(request * 3)
        text = b""
        while text.count(b'["a"]') < 3:
            piece = peer.recv(4096)
            assert piece
            text += piece


@pytest.mark.parametrize(
    "data",
    [
        b"\xda\xbb" * 50 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"A" * 200_000,
    ],
)
def test_what_is_no_http_is_answered_400_and_the_server_goes_on(
    export: Callable[..., URL], data: bytes
) -> None:
    url = export()
    with socket.create_connection((url.host or "", url.port), timeout=10) as peer:
        text = b""
        try:
            peer.sendall(data)
            while piece := peer.recv(4096):
                text += piece
        except ConnectionResetError:
            pass
    assert not text or text.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert ask(url, "/com.acme.Catalogue/find", ["a", 1, True]) == (200, ["a"])


def test_a_body_beyond_the_payload_is_413(export: Callable[..., URL]) -> None:
    url = export(protocol={"payload": 1000})
    assert ask(url, "/com.acme.Catalogue/find", ["a" * 2000, 1])[0] == 413
    assert ask(url, "/com.acme.Catalogue/find", ["a", 1, True])[0] == 200


def test_what_comes_while_a_request_is_served_is_not_hoarded(
    application: Callable[..., Bootstrap], eventually: Callable[..., None]
) -> None:
    app = application(protocol=ProtocolConfig(name="rest", host="127.0.0.1", port=-1))
    held = threading.Event()

    class Slow:
        def wait(self) -> str:
            held.wait(60)
            return "done"

    config = app.service(Slow(), scope="remote", interface_name="com.acme.Slow")
    app.start()
    (server,) = app.runtime.protocol("rest")._servers.values()  # type: ignore[attr-defined]
    asked = b"POST /com.acme.Slow/wait HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n[]"
    with socket.create_connection(("127.0.0.1", config.urls[0].port), timeout=20) as peer:
        peer.sendall(asked)
        eventually(lambda: [c for c in server._connections if c.is_busy])
        (connection,) = server._connections
        peer.sendall(asked * 1200)
        eventually(lambda: not connection._transport.is_reading())
        held.set()
        data = b""
        while data.count(b'"done"') < 1201:
            data += peer.recv(65536)


def test_a_call_that_may_have_been_made_is_not_made_again_in_secret(
    application: Callable[..., Bootstrap],
) -> None:
    """The provider dies after the second request has reached it, on a connection kept from the first."""
    requests: list[bytes] = []

    def serve(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer:
            for answer in (b'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n["tea"]', b""):
                data = b""
                while not data.endswith(b"]"):
                    data += peer.recv(1000)
                requests.append(data)
                peer.sendall(answer)
        with contextlib.suppress(OSError):
            peer, _ = server.accept()
            requests.append(peer.recv(1000))
            peer.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        proxy = application().reference(
            Catalogue,
            url=f"rest://127.0.0.1:{server.getsockname()[1]}",
            cluster="failfast",
            timeout=20_000,
        )
        assert proxy.find("tea", 1) == ["tea"]
        with pytest.raises(RpcException, match="cause: closed"):
            proxy.find("tea", 1)
        assert len(requests) == 2


def test_stopping_lets_a_call_under_way_finish(application: Callable[..., Bootstrap]) -> None:
    app = application(
        properties={"dubbo.service.shutdown.wait": "5000"},
        protocol=ProtocolConfig(name="rest", host="127.0.0.1", port=-1),
    )
    config = app.service(Catalogue(), scope="remote")
    app.start()
    url = config.urls[0]
    connection = HTTPConnection(url.host or "", url.port, timeout=10)
    connection.request("POST", "/com.acme.Catalogue/slow", b"[0.3]")
    assert ask(url, "/com.acme.Catalogue/find", ["a", 1, True])[0] == 200  # so the first has arrived, too
    app.stop()
    assert json.loads(connection.getresponse().read()) == "done"
    connection.close()
