"""Settings whose effect shows only when something runs: waiting, connecting, sending, choosing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.services import (
    ApplicationConfig,
    Bootstrap,
    ConsumerConfig,
    MethodConfig,
    ProtocolConfig,
    ProviderConfig,
    RegistryConfig,
    RpcException,
    interface,
)


@interface("com.acme.Sink")
class Sink:
    def put(self, data: bytes) -> None: ...


class Taking(Sink):
    def put(self, data: bytes) -> None: ...


# -- sent ----------------------------------------------------------------------------------------------------


@pytest.fixture
def deaf() -> Iterator[str]:
    """A server that accepts connections and never reads."""
    held = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            try:
                while True:
                    held.append(server.accept()[0])
            except OSError:
                return

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"dubbo://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in held:
        connection.close()


LARGE = bytes(64 * 1024 * 1024)  # more than the kernel takes


def test_a_one_way_call_returns_at_once_unless_it_must_be_sent(
    application: Callable[..., Bootstrap], deaf: str
) -> None:
    put = MethodConfig(name="put", return_=False)
    application().reference(Sink, url=deaf, methods=[put]).put(LARGE)


def test_a_one_way_call_that_must_be_sent_fails_when_nobody_takes_it(
    application: Callable[..., Bootstrap], deaf: str
) -> None:
    put = MethodConfig(name="put", return_=False, sent=True, timeout=300)
    sink = application().reference(Sink, url=deaf, methods=[put], retries=0)
    with pytest.raises(RpcException, match=r"Failed to send message to 127.* in timeout\(300ms\) limit"):
        sink.put(LARGE)


def test_a_one_way_call_that_is_sent_succeeds(application: Callable[..., Bootstrap]) -> None:
    app = application(
        protocol=ProtocolConfig(name="dubbo", host="127.0.0.1", port=-1, payload=len(LARGE) * 2)
    )
    url = app.service(Taking(), interface=Sink, scope="remote")
    app.start()
    put = MethodConfig(name="put", return_=False, sent=True, timeout=60_000)
    sink = application().reference(Sink, url=f"dubbo://{url.urls[0].address}", methods=[put])
    for _ in range(3):
        sink.put(LARGE)


# -- init ----------------------------------------------------------------------------------------------------


def test_a_reference_with_init_is_got_when_the_application_starts(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    app = application("consumer", registry=registry())
    service = app.service(who.named("own"), interface=who.interface, version="own", scope="none")
    app.refer(who.interface, init=True)
    with pytest.raises(RpcException, match=r"No provider available for the service com\.acme\.Who"):
        app.start()
    assert not service.exported
    who.provide(registry(), "a")
    app.start()
    assert service.exported
    assert app.references[0].get().who() == "a"


def test_a_reference_without_init_waits_for_its_first_get(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    app = application("consumer", registry=registry(), consumer=ConsumerConfig(init=True))
    later = app.refer(who.interface, init=False)
    app.start()
    who.provide(registry(), "a")
    assert later.get().who() == "a"


# -- wait ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "application_wait", "expected"),
    [
        (ProviderConfig(), None, 10_000),
        (ProviderConfig(), 7_000, 7_000),
        (ProviderConfig(wait=5_000), None, 5_000),
        (ProviderConfig(wait=5_000), 7_000, 5_000),
    ],
)
def test_the_providers_wait_is_how_long_its_end_may_take(
    who: Any,
    application: Callable[..., Bootstrap],
    provider: ProviderConfig,
    application_wait: int | None,
    expected: int,
) -> None:
    named = ApplicationConfig(name="shop", shutwait=application_wait)
    app = application(named, properties={"dubbo.service.shutdown.wait": ""}, provider=provider)
    app.service(who.named("a"), interface=who.interface, scope="none").prepare()
    assert app.runtime.shutdown_wait_ms == expected


# -- rest's connections --------------------------------------------------------------------------------------


def has_keep_alive_timer(local: int, remote: int) -> bool:
    """What the kernel says of the connection between two ports of this machine, seen from `local`."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ends = tuple(int(each.partition(":")[2], 16) for each in fields[1:3])
        if ends == (local, remote):
            return fields[5].startswith("02:")
    raise AssertionError("there is no such connection")


@pytest.mark.parametrize("keep_alive", [None, True, False])
def test_the_kernel_asks_after_silent_rest_clients_unless_told_not_to(
    who: Any, application: Callable[..., Bootstrap], eventually: Callable[..., None], keep_alive: bool | None
) -> None:
    app = application(protocol=ProtocolConfig(name="rest", host="127.0.0.1", port=-1, keep_alive=keep_alive))
    config = app.service(who.named("a"), interface=who.interface, scope="remote")
    app.start()
    port = config.urls[0].port
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /com.acme.Who/who HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        eventually(lambda: has_keep_alive_timer(port, client.getsockname()[1]) is (keep_alive is not False))


def test_a_rest_port_accepts_no_more_connections_than_it_may(
    who: Any, application: Callable[..., Bootstrap]
) -> None:
    app = application(protocol=ProtocolConfig(name="rest", host="127.0.0.1", port=-1, accepts=1))
    config = app.service(who.named("a"), interface=who.interface, scope="remote")
    app.start()

    def ask(connection: socket.socket) -> bytes:
        connection.sendall(b"GET /com.acme.Who/who HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b'"a"') and (part := connection.recv(1000)):
            answer += part
        return answer

    with socket.create_connection(("127.0.0.1", config.urls[0].port)) as first:
        assert ask(first).startswith(b"HTTP/1.1 200")
        with socket.create_connection(("127.0.0.1", config.urls[0].port)) as second:
            assert second.recv(1000) == b""
        assert ask(first).startswith(b"HTTP/1.1 200")


def test_a_lazy_rest_reference_connects_with_its_first_call(
    who: Any, application: Callable[..., Bootstrap]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    proxy = application().reference(who.interface, url=f"rest://127.0.0.1:{port}", lazy=True)
    app = application(protocol=ProtocolConfig(name="rest", host="127.0.0.1", port=port))
    app.service(who.named("a"), interface=who.interface, scope="remote")
    app.start()
    assert proxy.who() == "a"


# -- which of several ----------------------------------------------------------------------------------------


def test_a_protocol_or_registry_that_is_not_default_is_only_for_those_who_name_it(
    who: Any, application: Callable[..., Bootstrap], tmp_path: Path
) -> None:
    rest = ProtocolConfig(name="rest", host="127.0.0.1", port=-1, default=False)
    east = RegistryConfig(address=f"embedded://{tmp_path}/east")
    west = RegistryConfig(address=f"embedded://{tmp_path}/west", default=False)
    dubbo = ProtocolConfig(name="dubbo", host="127.0.0.1", port=-1)
    app = application(protocol=[dubbo, rest], registry=[east, west])
    usual = app.service(who.named("a"), interface=who.interface)
    special = app.service(
        who.named("b"), interface=who.interface, version="2", protocols=[rest], registries=[west]
    )
    app.start()
    assert [url.protocol for url in usual.urls] == ["dubbo"]
    assert [url.protocol for url in special.urls] == ["rest"]
    assert usual.registries == [east]
    assert special.registries == [west]


# -- a provider's word for its consumers ---------------------------------------------------------------------


@interface("com.acme.Flaky")
class Flaky:
    def try_it(self) -> int: ...  # type: ignore[empty-body]


class Slow(Flaky):
    """Counts the calls that reach it, and answers none in time."""

    def __init__(self) -> None:
        self.calls = 0

    def try_it(self) -> int:
        self.calls += 1
        time.sleep(0.5)
        return self.calls


@pytest.mark.parametrize(
    ("provided", "referred", "expected"), [({"retries": 0}, {}, 1), ({"retries": 0}, {"retries": 1}, 2)]
)
def test_consumers_follow_their_provider_in_what_they_leave_open(
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
    provided: dict[str, Any],
    referred: dict[str, Any],
    expected: int,
) -> None:
    app = application("provider", registry=registry())
    slow = Slow()
    app.service(slow, interface=Flaky, timeout=100, **provided)
    app.start()
    proxy = application("consumer", registry=registry()).reference(Flaky, **referred)
    with pytest.raises(RpcException, match=f"Tried {expected} times"):
        proxy.try_it()
    eventually(lambda: slow.calls == expected)


def test_a_provider_names_the_strategy_of_its_consumers(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    app = application("provider", registry=registry())
    app.service(Slow(), interface=Flaky, timeout=100, cluster="failsafe")
    app.start()
    assert application("consumer", registry=registry()).reference(Flaky).try_it() is None
