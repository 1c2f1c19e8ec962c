"""Starting and ending an application's services: one call exports them all, one takes them all back.

`@service` marks implementations; `Bootstrap.start()` exports the marked and the given ones, and `stop()` deregisters,
lets calls under way finish and closes. Also a context manager, blocking or asynchronous.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, TypeVar

from headrace.services.config.settings import (
    ApplicationConfig,
    ConsumerConfig,
    MetadataReportConfig,
    MetricsConfig,
    ModuleConfig,
    ProtocolConfig,
    ProviderConfig,
    RegistryConfig,
)
from headrace.services.errors import ConfigError
from headrace.services.reference import ReferenceConfig
from headrace.services.runtime import Runtime
from headrace.services.service import ServiceConfig

logger = logging.getLogger("headrace.services")
C = TypeVar("C", bound=type)
T = TypeVar("T")

SERVICE_ATTRIBUTE = "__service_settings__"


def service(interface: type | str | None = None, **settings: Any) -> Callable[[C], C]:
    """Mark a class as the implementation of a service; the settings are those of ServiceConfig.

    Without an interface the class's own public methods are the service. `export` and `async` go by these names.
    """

    def mark(cls: C) -> C:
        named = {f"{key}_" if key in ("export", "async") else key: value for key, value in settings.items()}
        setattr(cls, SERVICE_ATTRIBUTE, {"interface": interface, **named})
        return cls

    return mark


def service_config(target: Any, runtime: Runtime, **settings: Any) -> ServiceConfig[Any]:
    """The ServiceConfig of a marked class, of an instance of one, or of any other class or instance."""
    cls = target if inspect.isclass(target) else type(target)
    marked = dict(cls.__dict__.get(SERVICE_ATTRIBUTE, {"interface": None}))
    if inspect.isclass(target):
        try:
            target = target()
        except TypeError as error:
            raise ConfigError(
                f"{cls.__qualname__} cannot be made without arguments ({error}): give an instance instead"
            ) from None
    marked["interface"] = marked["interface"] or cls
    return ServiceConfig(ref=target, runtime=runtime, **{**marked, **settings})


class Bootstrap:
    """One application and its services."""

    def __init__(
        self,
        application: str | ApplicationConfig | None = None,
        *,
        registry: str | RegistryConfig | list[RegistryConfig] | None = None,
        protocol: ProtocolConfig | list[ProtocolConfig] | None = None,
        provider: ProviderConfig | None = None,
        consumer: ConsumerConfig | None = None,
        module: ModuleConfig | None = None,
        metadata_report: str | MetadataReportConfig | None = None,
        metrics: str | MetricsConfig | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self.runtime = runtime or Runtime()
        self.services: list[ServiceConfig[Any]] = []
        self.references: list[ReferenceConfig[Any]] = []
        chosen = ApplicationConfig(name=application) if isinstance(application, str) else application
        self.runtime.application = chosen
        if isinstance(registry, str):
            registry = RegistryConfig(address=registry)
        self.runtime.registries = _several(registry)
        self.runtime.protocols = _several(protocol)
        self.runtime.provider = provider
        self.runtime.consumer = consumer
        self.runtime.module = module
        if isinstance(metadata_report, str):
            metadata_report = MetadataReportConfig(address=metadata_report)
        self.runtime.metadata_report = metadata_report
        self.runtime.metrics = metrics_at(metrics) if isinstance(metrics, str) else metrics

    def service(self, target: Any, **settings: Any) -> ServiceConfig[Any]:
        """Add a service: a marked class, an implementation, or a ready ServiceConfig."""
        if isinstance(target, ServiceConfig):
            target.runtime = self.runtime
            config = target
        else:
            config = service_config(target, self.runtime, **settings)
        self.services.append(config)
        return config

    def refer(self, interface: type[T], **settings: Any) -> ReferenceConfig[T]:
        """Add a reference, created by its `get()`; with `init=True` the application's start creates it, or fails."""
        config = ReferenceConfig(interface=interface, runtime=self.runtime, **settings)
        self.references.append(config)
        return config

    def reference(self, interface: type[T], **settings: Any) -> T:
        """A service to call."""
        return ReferenceConfig(interface=interface, runtime=self.runtime, **settings).get()

    async def reference_async(self, interface: type[T], **settings: Any) -> T:
        """A service with every method awaitable."""
        return await ReferenceConfig(interface=interface, runtime=self.runtime, **settings).get_async()

    # -- starting and ending -----------------------------------------------------------------------------

    def start(self) -> Bootstrap:
        """Check every service, get the references with `init`, then export every service."""
        for config in self.services:
            config.prepare()
        for reference in self._wanted_now():
            reference.get()
        for config in self.services:
            config.export()
        return self

    def stop(self) -> None:
        """Withdraw everything, for good: a service that was exported cannot be exported again."""
        self.runtime.shutdown()
        self._withdrawn()

    async def start_async(self) -> Bootstrap:
        """The same on the running event loop, which then serves the calls."""
        self.runtime.attach(asyncio.get_running_loop())
        for config in self.services:
            config.prepare()
        for reference in self._wanted_now():
            await reference.get_async()
        for config in self.services:
            await config.export_async()
        return self

    async def stop_async(self) -> None:
        await self.runtime.shutdown_async()
        self._withdrawn()

    def _wanted_now(self) -> list[ReferenceConfig[Any]]:
        for reference in self.references:
            reference.prepare()
        return [reference for reference in self.references if reference.should_init]

    def _withdrawn(self) -> None:
        for config in self.services:
            config.unexported = config.exported

    @asynccontextmanager
    async def lifespan(self, _application: object = None) -> AsyncIterator[None]:
        """The start-up hook of an ASGI application: `FastAPI(lifespan=services.lifespan)`."""
        async with self:
            yield

    def serve_forever(self) -> None:
        """Start, say on stdout where each service is, wait for SIGINT or SIGTERM, stop."""
        ended = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        with self:
            for config in self.services:
                for url in config.urls:
                    if url.get("scope").lower() != "none":
                        print(f"serving {url.path_key} on {url.protocol}://{url.address}", flush=True)
            ended.wait()

    def __enter__(self) -> Bootstrap:
        try:
            return self.start()
        except BaseException:
            self.stop()  # some services may be out already
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Bootstrap:
        try:
            return await self.start_async()
        except BaseException:
            await self.stop_async()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_async()


def metrics_at(address: str) -> MetricsConfig:
    """The settings that serve metrics at HOST:PORT."""
    from headrace.client.errors import ConfigError as ClientConfigError  # they load Kafka's client
    from headrace.client.metrics_port import metrics_address

    try:
        host, port = metrics_address(address)
    except ClientConfigError as error:
        raise ConfigError(str(error)) from None
    return MetricsConfig(host=host, port=port)


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]
