"""Rules in a registry: overrides that change a live export, providers switched off, routes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.services import (
    URL,
    Bootstrap,
    MethodConfig,
    ProtocolConfig,
    RegistryConfig,
    RpcException,
    ServiceConfig,
    interface,
    points,
)
from headrace.services.config.complete import load_registries
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter
from headrace.services.protocols.dubbo.protocol import DubboProtocol
from headrace.services.protocols.registry import registry_url_of
from headrace.services.url import encode


@pytest.fixture
def write_rule(who: Any, application: Callable[..., Bootstrap]) -> Callable[..., Callable[[], None]]:
    """Puts a rule into a registry, as an administrator would; returns how to take it back."""

    def write(registry: RegistryConfig, rule: str) -> Callable[[], None]:
        app = application("administrator", registry=registry)
        config = ServiceConfig(interface=who.interface, ref=who.named("x"), runtime=app.runtime)
        config.prepare()
        (url,) = load_registries(config, provider=True, runtime_parameters={})
        runtime, where = app.runtime, registry_url_of(url)

        async def register() -> None:
            await (await runtime.registry(where)).register(URL.parse(rule))

        async def unregister() -> None:
            await (await runtime.registry(where)).unregister(URL.parse(rule))

        runtime.run(register())
        return lambda: runtime.run(unregister())

    return write


def test_an_override_rule_changes_a_live_export_and_back(
    who: Any,
    write_rule: Callable[..., Callable[[], None]],
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    app = who.provide(registry(), "a", weight=10)
    proxy = application("c", registry=registry()).reference(who.interface, retries=0)
    around = application("d").reference(
        who.interface, url=f"dubbo://{app.services[0].urls[0].address}", retries=0
    )
    assert who.is_answered_by_a(around)
    take_back = write_rule(
        registry(),
        "override://0.0.0.0/com.acme.Who?category=configurators&dynamic=false&side=provider&token=changed",
    )
    eventually(lambda: not who.is_answered_by_a(around))  # the export wants a token now …
    eventually(lambda: who.is_answered_by_a(proxy))  # … which consumers learn through the registry
    take_back()
    eventually(lambda: who.is_answered_by_a(around))


def test_a_provider_whose_numbers_are_none_harms_only_itself(
    who: Any,
    write_rule: Callable[..., Callable[[], None]],
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
) -> None:
    who.provide(registry(), "a")
    write_rule(registry(), "dubbo://127.0.0.1:1/com.acme.Who?weight=heavy&dynamic=false")
    assert who.answers(application("c", registry=registry()).reference(who.interface, retries=0)) == {"a"}


def test_a_rule_that_could_not_be_applied_is_tried_again(
    who: Any,
    write_rule: Callable[..., Callable[[], None]],
    application: Callable[..., Bootstrap],
    tmp_path: Path,
    eventually: Callable[..., None],
) -> None:
    attempts: list[str] = []

    class Reluctant(DubboProtocol):
        async def export(self, invoker: Invoker) -> Exporter:
            if invoker.url.get("weight") == "7":
                attempts.append("7")
                if len(attempts) == 1:
                    raise OSError("not now")
            return await super().export(invoker)

    points.PROTOCOLS.register("reluctant", Reluctant)

    def registry() -> RegistryConfig:
        return RegistryConfig(address=f"embedded://{tmp_path}", parameters={"retry.period": "100"})

    app = application(
        "p", registry=registry(), protocol=ProtocolConfig(name="reluctant", host="127.0.0.1", port=-1)
    )
    app.service(who.named("a"), interface=who.interface)
    app.start()
    write_rule(
        registry(),
        "override://0.0.0.0/com.acme.Who?category=configurators&dynamic=false&weight=7",
    )
    eventually(lambda: len(attempts) == 2)


def test_a_rule_can_change_how_many_calls_run_at_once(
    write_rule: Callable[..., Callable[[], None]],
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    go_on = threading.Event()

    @interface("com.acme.Gate")
    class Gate:
        def wait(self) -> str:
            return "through" if go_on.wait(60) else "stuck"

        def knock(self) -> str:
            return "heard"

    app = application(
        "p", registry=registry(), protocol=ProtocolConfig(host="127.0.0.1", port=-1, threads=1, queues=0)
    )
    app.service(Gate(), scope="remote")
    app.start()
    gate = application("c", registry=registry()).reference(
        Gate, retries=0, timeout=60_000, methods=[MethodConfig(name="wait", async_=True)]
    )
    waiting = cast("Future[str]", gate.wait())

    def is_heard() -> bool:
        try:
            return gate.knock() == "heard"
        except RpcException:
            return False

    try:
        eventually(lambda: not is_heard())  # the one thread waits at the gate
        write_rule(
            registry(),
            "override://0.0.0.0/com.acme.Gate?category=configurators&dynamic=false&side=provider&threads=2",
        )
        eventually(is_heard)
    finally:
        go_on.set()
    assert waiting.result(60) == "through"


def test_a_rule_can_disable_one_provider(
    who: Any,
    write_rule: Callable[..., Callable[[], None]],
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    first = who.provide(registry(), "a")
    who.provide(registry(), "b")
    proxy = application("c", registry=registry()).reference(who.interface)
    address = first.services[0].urls[0].address
    take_back = write_rule(
        registry(),
        f"override://{address}/com.acme.Who?category=configurators&dynamic=false&disabled=true",
    )
    eventually(lambda: who.answers(proxy) == {"b"})
    take_back()
    eventually(lambda: who.answers(proxy) == {"a", "b"})


def test_a_route_sends_consumers_to_some_providers_only(
    who: Any,
    write_rule: Callable[..., Callable[[], None]],
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    first = who.provide(registry(), "a")
    who.provide(registry(), "b")
    proxy = application("c", registry=registry()).reference(who.interface)
    rule = encode(f"method = who => port = {first.services[0].urls[0].port}")
    take_back = write_rule(
        registry(),
        f"condition://0.0.0.0/com.acme.Who?category=routers&dynamic=false&rule={rule}",
    )
    eventually(lambda: who.answers(proxy) == {"a"})
    take_back()
    eventually(lambda: who.answers(proxy) == {"a", "b"})
