"""Export through a registry: make the service reachable, register it, and apply the rules the registry sends.

An invoker with a URL `registry://…?export=<provider URL>` is exported under that provider URL by the protocol named
there, registered, and exported again whenever an override rule changes the URL; consumers keep their connections.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from headrace.services.addresses import is_match
from headrace.services.cluster.configurator import Configurator
from headrace.services.cluster.directory import refer_through_registry
from headrace.services.cluster.rules import configure, to_configurators
from headrace.services.errors import ConfigError
from headrace.services.interface import InterfaceModel
from headrace.services.invoker import Invoker, WrappedInvoker
from headrace.services.protocols.base import Exporter, Protocol, ProtocolRuntime
from headrace.services.registry.base import Registry
from headrace.services.url import URL

logger = logging.getLogger("headrace.services")

# What a registry need not show: where we bind, and what only this process uses.
_HIDDEN = ("monitor", "bind.ip", "bind.port", "qos.enable", "qos.port", "qos.accept.foreign.ip", "validation")
_SIMPLIFIED = (
    "application",
    "codec",
    "exchanger",
    "serialization",
    "cluster",
    "connections",
    "deprecated",
    "group",
    "loadbalance",
    "mock",
    "path",
    "timeout",
    "token",
    "version",
    "warmup",
    "weight",
    "timestamp",
    "dubbo",
    "release",
)


class RegistryProtocol(Protocol):
    """Not a wire of its own: it joins another protocol and a registry."""

    name = "registry"
    default_port = 9090

    def __init__(self, runtime: ProtocolRuntime) -> None:
        super().__init__(runtime)
        self._exporters: dict[str, RegistryExporter] = {}

    async def export(self, invoker: Invoker) -> Exporter:
        exported = invoker.url.get_decoded("export")
        if not exported:
            raise ConfigError(f"The registry export url is null! registry: {invoker.url}")
        origin = URL.parse(exported)
        registry_url = registry_url_of(invoker.url)
        registry = await self.runtime.registry(registry_url)
        key = f"{registry_url.identity} {origin.remove('dynamic', 'enabled').full}"
        if key in self._exporters:
            return self._exporters[key]
        exporter = RegistryExporter(invoker, origin, registry, registry_url, self)
        self._exporters[key] = exporter
        exporter.forget = lambda: self.forget(key)
        try:
            await exporter.start()
        except BaseException:
            await exporter.abandon()
            raise
        return exporter

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        registry_url = registry_url_of(url)
        registry = await self.runtime.registry(registry_url)
        return await refer_through_registry(self.runtime, registry, interface, registry_url)

    def forget(self, key: str) -> None:
        self._exporters.pop(key, None)

    async def destroy(self) -> None:
        for exporter in list(self._exporters.values()):
            await exporter.withdraw()


def registry_url_of(url: URL) -> URL:
    """`registry://host?registry=zookeeper` as the registry's own `zookeeper://host`."""
    if url.protocol != "registry":
        return url
    return url.replace(protocol=url.get("registry", "dubbo")).remove("registry")


def registered_url(provider: URL, registry: URL) -> URL:
    """What the registry is shown of a provider's URL."""
    if not registry.get_bool("simplified", False):
        hidden = [key for key in provider.parameters if key.startswith(".")]
        return provider.remove(*hidden, *_HIDDEN)
    keep = {*_SIMPLIFIED, *registry.get_list("extra-keys")}
    if provider.path != provider.get("interface"):
        keep.add("interface")
    methods = provider.get_list("methods")
    return provider.keep(
        key for key in provider.parameters if key in keep or any(key.startswith(f"{m}.") for m in methods)
    )


def _nothing() -> None:
    """What an export that is in no table has to forget."""


class RegistryExporter(Exporter):
    """One service in one registry: its present export, its registration, its override rules."""

    def __init__(
        self, invoker: Invoker, origin: URL, registry: Registry, registry_url: URL, protocol: RegistryProtocol
    ) -> None:
        super().__init__(invoker)
        self._origin = origin
        self._registry = registry
        self._registry_url = registry_url
        self._protocol = protocol
        self._current = origin
        self._registered: URL | None = None
        self._exporter: Exporter | None = None
        self._configurators: list[Configurator] = []
        self._subscription = origin.replace(protocol="provider").add(
            {"category": "configurators", "check": "false"}
        )
        self._changing = asyncio.Lock()  # a rule may come while another is being applied
        self._ended = False
        self.forget: Callable[[], None] = _nothing

    @property
    def url(self) -> URL:
        """The URL the service is exported under now, rules included."""
        return self._current

    async def start(self) -> None:
        self._exporter = await self._export(self._current)
        await self._register()
        if self._registry_url.get_bool("subscribe", True):
            await self._registry.subscribe(self._subscription, self)

    async def _export(self, url: URL) -> Exporter:
        return await self._protocol.runtime.export(WrappedInvoker(self.invoker, url))

    async def _register(self) -> None:
        url = registered_url(self._current, self._registry_url)
        if url == self._registered or not url.get_bool("register", True):
            return
        before, self._registered = self._registered, url
        await self._registry.register(url)
        if before is not None:
            await self._registry.unregister(before)

    # -- rules -------------------------------------------------------------------------------------------

    async def notify(self, urls: list[URL]) -> None:
        """The registry's override rules for this service, all of them."""
        matched = []
        for url in urls:
            if url.protocol == "override" and not url.get("category"):
                url = url.add({"category": "configurators"})
            if url.protocol == "empty" or is_match(self._subscription, url):
                matched.append(url)
        if matched:
            self._configurators = to_configurators(matched)
            await self._apply()

    async def _apply(self) -> None:
        async with self._changing:
            url = configure(self._configurators, self._origin)
            if url == self._current or self._ended:
                return
            self._exporter = await self._export(url)
            old, self._current = self._current, url
            await self._register()
            logger.info(
                "exported provider url changed, origin url: %s, old export url: %s, new export url: %s",
                self._origin,
                old,
                url,
            )

    # -- the end -----------------------------------------------------------------------------------------

    async def unexport(self) -> None:
        """Deregister now; stop serving once consumers had `dubbo.service.shutdown.wait` to notice."""
        if self._ended:
            return
        await self.withdraw()
        seconds = self._protocol.runtime.shutdown_wait_ms / 1000
        if seconds:
            logger.info("Waiting %gs for registry to notify all consumers before unexport.", seconds)
            self._protocol.runtime.later(seconds, self._end)
        else:
            await self._end()

    async def abandon(self) -> None:
        """Undo a start that failed half way."""
        await self.withdraw()
        await self._end()

    async def withdraw(self) -> None:
        """Deregister, and serve on: at the end of the application the wire's own protocol knows when to stop."""
        if self._ended:
            return
        self._ended = True
        self.forget()
        for action in (self._deregister, self._unsubscribe):
            try:
                await action()
            except Exception as error:
                logger.warning("%s", error)

    async def _deregister(self) -> None:
        if self._registered is not None:
            await self._registry.unregister(self._registered)

    async def _unsubscribe(self) -> None:
        await self._registry.unsubscribe(self._subscription, self)

    async def _end(self) -> None:
        if self._exporter is not None:
            exporter, self._exporter = self._exporter, None
            await exporter.unexport()
