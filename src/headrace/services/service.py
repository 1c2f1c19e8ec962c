"""A service and its export: never twice, later if asked, to every protocol and registry, and back again.

The road of an export, which `_export_url` walks: proxy factory → invoker → metadata-carrying invoker → (filters) →
protocol → exporter. `export()` blocks; `export_async()` is for code on an event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from headrace.services import points
from headrace.services.config.base import is_name, is_path, setting
from headrace.services.config.complete import (
    complete,
    complete_protocols,
    load_metadata_report,
    load_monitor,
    load_registries,
    surroundings,
)
from headrace.services.config.settings import MethodConfig, ProtocolConfig, ProviderConfig, ProviderSettings
from headrace.services.errors import ConfigError, ServicesError
from headrace.services.export_url import argument_mistakes, provider_url
from headrace.services.generic import GenericService
from headrace.services.interface import InterfaceModel, describe, interface_name
from headrace.services.invoker import Invoker, WrappedInvoker
from headrace.services.models import ProviderModel
from headrace.services.protocols.base import Exporter
from headrace.services.release import runtime_parameters
from headrace.services.runtime import Runtime, default_runtime
from headrace.services.url import LOCALHOST, URL

logger = logging.getLogger("headrace.services")
T = TypeVar("T")


@dataclass(kw_only=True)
class ServiceConfig(ProviderSettings, Generic[T]):
    """One service: its interface, its implementation and how it is to be offered."""

    TAG: ClassVar[str] = "service"

    interface: type[T] | str | None = None
    ref: T | GenericService | None = None
    path: str | None = setting(check=is_path)
    interface_name: str | None = setting(key="interface", check=is_name)
    methods: list[MethodConfig] = field(default_factory=list)
    provider: ProviderConfig | None = None
    runtime: Runtime = field(default_factory=default_runtime)

    def __post_init__(self) -> None:
        self.exported = False
        self.unexported = False
        self.urls: list[URL] = []
        self._exporters: list[Exporter] = []
        self._delayed: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()  # an export and a withdrawal may be asked for at once
        self._model: InterfaceModel | None = None

    # -- what it is --------------------------------------------------------------------------------------

    @property
    def is_generic(self) -> bool:
        return isinstance(self.ref, GenericService)

    @property
    def model(self) -> InterfaceModel:
        """The interface as a table of methods."""
        if self._model is None:
            self._model = self._describe()
        return self._model

    def _describe(self) -> InterfaceModel:
        given = self.interface
        name = self.interface_name or (given if isinstance(given, str) else "")
        if self.is_generic:
            return describe(
                GenericService, name or (interface_name(given) if isinstance(given, type) else "")
            )
        if isinstance(given, type):
            return describe(given, name)
        return describe(type(self.ref), name)

    def full_path(self, protocol: ProtocolConfig) -> str:
        context = protocol.contextpath or (self.provider.contextpath if self.provider else None)
        path = self.path or self.model.name
        return f"{context.strip('/')}/{path}" if context else path

    @property
    def should_export(self) -> bool:
        chosen = self.provider.export_ if self.export_ is None and self.provider else self.export_
        return chosen is not False

    @property
    def delay_ms(self) -> int:
        chosen = self.provider.delay if self.delay is None and self.provider else self.delay
        return chosen or 0

    # -- preparing and checking --------------------------------------------------------------------------

    def prepare(self) -> None:
        """Complete the settings from their surroundings and the environment, and check every one of them."""
        runtime = self.runtime
        self.provider = self.provider or runtime.provider or ProviderConfig()
        self.provider.refresh(runtime.environment)
        complete(self, self.provider, runtime)
        self.protocols = complete_protocols(self.protocols or self.provider.protocols, runtime)
        mistakes = self._interface_mistakes()
        if mistakes:
            raise ConfigError(*mistakes)
        self.id = self.id or self.model.name
        self.refresh(runtime.environment)
        for method in self.methods:
            found = self.model.find(method.name or "")
            method.name = found.name if found is not None else method.name  # say_hello means sayHello
            method.service = self.model.name
            method.refresh(runtime.environment)
        arguments = [argument for method in self.methods for argument in method.arguments]
        parts = [*surroundings(self), self.provider, *self.protocols, self, *self.methods, *arguments]
        for part in parts:
            mistakes += part.mistakes()
        mistakes += self._method_mistakes()
        if mistakes:
            raise ConfigError(*dict.fromkeys(mistakes))
        runtime.warn(part.warnings() for part in parts)
        application_wait = self.application.shutwait if self.application else None
        runtime.stay_for(application_wait if self.provider.wait is None else self.provider.wait)

    def _interface_mistakes(self) -> list[str]:
        if self.interface is None and self.ref is None:
            return ["service: interface is missing, give the class or the name of the service's interface"]
        if self.ref is None:
            return [f"service {self.model.name}: ref is missing, give the implementation"]
        if isinstance(self.ref, type):
            return [
                f"service {self.model.name}: ref is the class {self.ref.__qualname__}, give an instance of it"
            ]
        missing = [
            m.attribute
            for m in self.model.methods.values()
            if not callable(getattr(self.ref, m.attribute, None))
        ]
        owner = type(self.ref).__qualname__
        return [
            f"service {self.model.name}: the class {owner} does not implement it, {name}() is missing"
            for name in missing
        ] + [
            f"service {self.model.name}: {owner}.{m.attribute} cannot take the interface's {len(m.parameters)} arguments"
            for m in self.model.methods.values()
            if m.attribute not in missing and not _accepts(getattr(self.ref, m.attribute), len(m.parameters))
        ]

    def _method_mistakes(self) -> list[str]:
        mistakes = []
        for method in self.methods:
            if method.name and self.model.find(method.name) is None and not self.is_generic:
                mistakes.append(f"method {method.name}: the interface {self.model.name} has no such method")
            mistakes += argument_mistakes(method, self.model)
        return mistakes

    # -- exporting ---------------------------------------------------------------------------------------

    def export(self) -> None:
        """Offer the service; with a delay, later. Does nothing when `export` is false or it is offered already."""
        self.runtime.run(self._export())

    async def export_async(self) -> None:
        await self.runtime.run_async(self._export())

    def unexport(self) -> None:
        """Withdraw the service for good: deregister, then stop serving once consumers had time to notice."""
        self.runtime.run(self._unexport())

    async def unexport_async(self) -> None:
        await self.runtime.run_async(self._unexport())

    async def _export(self) -> None:
        self.prepare()
        if not self.should_export:
            return
        if self.delay_ms > 0 and not self.exported:
            if self._delayed is None or self._delayed.done():
                self._delayed = self.runtime.later(self.delay_ms / 1000, self._export_now)
            return
        await self._do_export()

    async def _export_now(self) -> None:
        """Runs when the delay is over; no caller waits for the outcome, so failures go to the log."""
        try:
            await self._do_export()
        except Exception:
            logger.exception("The delayed export of %s failed", self.model.name)

    async def _do_export(self) -> None:
        async with self._changing:
            if self.unexported:
                raise ServicesError(f"The service {self.model.name} has already unexported!")
            if self.exported:
                return
            try:
                self.runtime.open_metrics(self.metrics, self.application_name)
                registries = load_registries(self, provider=True, runtime_parameters=runtime_parameters())
                for protocol in self.protocols:
                    url = await self._export_url(provider_url(self, protocol, registries), registries)
                    self.urls.append(url)
                    model = ProviderModel(url.path_key, self.model, self.ref)
                    self.runtime.provider_models.setdefault(url.path_key, model).urls.append(url)
            except BaseException:
                await self._withdraw()
                self.urls.clear()
                raise
            self.exported = True

    async def _export_url(self, url: URL, registries: list[URL]) -> URL:
        scope = url.get("scope").lower()
        if scope == "none":
            return url
        if scope != "remote":
            await self._export_local(url)
        if scope != "local":
            url = await self._export_remote(url, registries)
            await self._publish(url)
        return url

    async def _export_local(self, url: URL) -> None:
        local = url.replace(protocol="injvm", host=LOCALHOST, port=0)
        self._exporters.append(await self.runtime.export(self._invoker(local)))
        logger.info("Export dubbo service %s to local registry url : %s", self.model.name, local)

    async def _export_remote(self, url: URL, registries: list[URL]) -> URL:
        if url.protocol == "injvm":
            return url
        logger.info("Export dubbo service %s to url %s", self.model.name, url)
        if not registries:
            self._exporters.append(
                await self.runtime.export(ProviderMetadataInvoker(self._invoker(url), self))
            )
            return url
        for registry in registries:
            url = url.add_if_absent({"dynamic": registry.get("dynamic", "true")})
            monitor = load_monitor(self, registry, runtime_parameters())
            if monitor is not None:
                url = url.add_encoded("monitor", monitor.full)
            logger.info("Register dubbo service %s url %s to registry %s", self.model.name, url, registry)
            if url.get("proxy"):
                registry = registry.add({"proxy": url.get("proxy")})
            invoker = self._invoker(registry.add_encoded("export", url.full))
            self._exporters.append(await self.runtime.export(ProviderMetadataInvoker(invoker, self)))
        return url

    def _invoker(self, url: URL) -> Invoker:
        factory = points.PROXIES.get(url.get("proxy", "python"))()
        return factory.get_invoker(self.ref, self.model, url, self.runtime.worker_pool)

    async def _publish(self, url: URL) -> None:
        report = load_metadata_report(self)
        if report is not None:
            await (await self.runtime.report(report)).publish_provider(url, self.model)

    # -- withdrawing -------------------------------------------------------------------------------------

    async def _unexport(self) -> None:
        if self._delayed is not None:
            self._delayed.cancel()
            self._delayed = None
        async with self._changing:
            if not self.exported or self.unexported:
                return
            self.unexported = True
            await self._withdraw()

    async def _withdraw(self) -> None:
        exporters, self._exporters = self._exporters, []
        for exporter in exporters:
            try:
                await exporter.unexport()
            except Exception:
                logger.warning("Unexpected error occurred when unexport %s", exporter.invoker, exc_info=True)
        for url in self.urls:
            model = self.runtime.provider_models.get(url.path_key)
            if model is not None and model.ref is self.ref:
                del self.runtime.provider_models[url.path_key]


class ProviderMetadataInvoker(WrappedInvoker):
    """Carries the service's whole description beside the invoker, for the protocol that exports it."""

    def __init__(self, inner: Invoker, metadata: ServiceConfig[Any]) -> None:
        super().__init__(inner)
        self.metadata = metadata


def _accepts(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a function in C has no signature to look at
        return True
    return True
