"""Extensions that users add: protocols, registries, configurators and proxy factories, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest

from headrace.services import (
    Bootstrap,
    ConfigError,
    ProtocolConfig,
    RegistryConfig,
    interface,
    points,
)
from headrace.services.addresses import is_match
from headrace.services.cluster.configurator import Configurator
from headrace.services.cluster.rules import configure, to_configurators
from headrace.services.extension import ExtensionPoint
from headrace.services.interface import InterfaceModel
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter, Protocol
from headrace.services.protocols.injvm import InjvmProtocol
from headrace.services.proxy import PythonProxyFactory
from headrace.services.registry.base import NotifyListener, Registry
from headrace.services.url import URL


@interface("com.acme.Work")
class Work:
    def do(self, what: str) -> str:
        return f"{what}: done"


class Loopback(Protocol):
    """A protocol of a user's own: hands calls over in a table."""

    name = "loopback"
    default_port = 7
    table: dict[str, Invoker] = {}  # noqa: RUF012

    async def export(self, invoker: Invoker) -> Exporter:
        self.table[invoker.url.path] = invoker

        class Ends(Exporter):
            async def unexport(self) -> None: ...

        return Ends(invoker)

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        table = self.table

        class Calls(Invoker):
            async def invoke(self, invocation: Invocation) -> Result:
                return await table[self.url.path].invoke(invocation)

        return Calls(interface, url)

    async def destroy(self) -> None:
        self.table.clear()


def test_a_protocol_of_ones_own_is_used_by_its_name(application: Callable[..., Bootstrap]) -> None:
    points.PROTOCOLS.register("loopback", Loopback)
    app = application(protocol=ProtocolConfig(name="loopback", host="127.0.0.1"))
    config = app.service(Work(), scope="remote")
    app.start()
    assert config.urls[0].address == "127.0.0.1:7"
    assert app.reference(Work, url=config.urls[0].identity).do("it") == "it: done"


def test_a_proxy_factory_of_ones_own_is_chosen_by_proxy(
    application: Callable[..., Bootstrap], tmp_path: Path
) -> None:
    made: list[str] = []

    class Noted(PythonProxyFactory):
        def get_invoker(self, ref, interface, url, pool):  # type: ignore[no-untyped-def]
            made.append(url.protocol)
            return super().get_invoker(ref, interface, url, pool)

    points.PROXIES.register("noted", Noted)
    app = application(registry=RegistryConfig(address=f"embedded://{tmp_path}"))
    app.service(Work(), proxy="noted")
    app.start()
    assert made == ["injvm", "registry"]


def test_extensions_come_from_entry_points_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EntryPoint(
        "elsewhere", "headrace.services.protocols.injvm:InjvmProtocol", "headrace.services.protocol"
    )
    asked: list[str] = []

    def entry_points(group: str) -> list[EntryPoint]:
        asked.append(group)
        return [found]

    monkeypatch.setattr("headrace.services.extension.entry_points", entry_points)
    point: ExtensionPoint[type] = ExtensionPoint("protocol", {})
    assert point.get("elsewhere") is InjvmProtocol
    assert point.names() == ["elsewhere"]
    assert asked == ["headrace.services.protocol"]
    with pytest.raises(ConfigError, match="there is no protocol named 'pigeon': known are elsewhere"):
        point.get("pigeon")


class Noticeboard(Registry):
    """A registry of a user's own: everybody in this process reads one board."""

    board: ClassVar[dict[URL, None]] = {}

    async def start(self) -> None: ...

    @property
    def is_available(self) -> bool:
        return True

    async def do_register(self, url: URL) -> None:
        self.board[url] = None

    async def do_unregister(self, url: URL) -> None:
        self.board.pop(url, None)

    async def do_subscribe(self, url: URL, listener: NotifyListener) -> None:
        await self.notify(url, listener, await self.lookup(url))

    async def do_unsubscribe(self, url: URL, listener: NotifyListener) -> None: ...

    async def lookup(self, url: URL) -> list[URL]:
        return [each for each in self.board if is_match(url, each)]

    async def services(self) -> list[str]:
        return sorted({url.interface for url in self.board})


def test_a_registry_of_ones_own_is_used_by_its_name(application: Callable[..., Bootstrap]) -> None:
    points.REGISTRIES.register("noticeboard", Noticeboard)
    provider, consumer = (application(name, registry="noticeboard://here:1") for name in "pc")
    provider.service(Work())
    provider.start()
    assert consumer.reference(Work).do("it") == "it: done"
    assert {url.get("side") for url in Noticeboard.board} == {"provider", "consumer"}
    for app in (provider, consumer):
        app.stop()
    assert Noticeboard.board == {}


class Halving(Configurator):
    """A kind of rule of a user's own."""

    def change(self, url: URL, parameters: dict[str, str]) -> URL:
        return url.add({"weight": url.get_int("weight", 100) // 2})


def test_a_configurator_of_ones_own_makes_rules_of_its_kind_known() -> None:
    points.CONFIGURATORS.register("halve", Halving)
    rules = to_configurators([URL.parse("halve://0.0.0.0/com.acme.Work?category=configurators")])
    url = configure(rules, URL.parse("dubbo://10.0.0.1:1/com.acme.Work?side=provider&weight=70"))
    assert url.get("weight") == "35"


def test_a_configurator_named_like_a_protocol_has_the_last_word_on_its_exports(
    application: Callable[..., Bootstrap],
) -> None:
    points.PROTOCOLS.register("halved", Loopback)
    points.CONFIGURATORS.register("halved", Halving)
    app = application(protocol=ProtocolConfig(name="halved", host="127.0.0.1"))
    config = app.service(Work(), scope="none", weight=80)
    config.export()
    assert config.urls[0].get("weight") == "40"
