"""What one application's services share at run time: its event loop, global settings, protocols, registries and models.

Everything that must exist once per application lives here and has no other owner. The loop is a thread of ours
unless the application lends its own with `attach`; blocking calls hand their work to it with `run`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop

from headrace.services import points
from headrace.services.config.environment import Environment
from headrace.services.config.settings import (
    ApplicationConfig,
    ConsumerConfig,
    MetadataReportConfig,
    MetricsConfig,
    ModuleConfig,
    MonitorConfig,
    ProtocolConfig,
    ProviderConfig,
    RegistryConfig,
)
from headrace.services.errors import ConfigError, ServicesError
from headrace.services.filters.accesslog import flush_access_logs
from headrace.services.filters.chain import build_chain
from headrace.services.interface import InterfaceModel
from headrace.services.invoker import Invoker
from headrace.services.models import ConsumerModel, ProviderModel
from headrace.services.net import reserve_port
from headrace.services.pool import WorkerPool
from headrace.services.url import URL

if TYPE_CHECKING:
    from headrace.services.metadata import MetadataReport
    from headrace.services.metrics_page import MetricsPage
    from headrace.services.protocols.base import Exporter, OpenConnections, Protocol
    from headrace.services.registry.base import Registry

logger = logging.getLogger("headrace.services")
T = TypeVar("T")

SHUTDOWN_WAIT = "dubbo.service.shutdown.wait"
DEFAULT_SHUTDOWN_WAIT_MS = 10_000
DEFAULT_THREADS = 200
_CANCEL_SECONDS = 1.0
_METRICS_HOST = "127.0.0.1"
_METRICS_PORT = 9465
_NO_DUBBO_METRICS = (
    "metrics.protocol=dubbo has no effect: metrics are not offered over dubbo://, only to Prometheus "
    "(metrics.protocol=prometheus)"
)


class Runtime:
    """The state shared by an application's services and references."""

    def __init__(self, environment: Environment | None = None) -> None:
        self.environment = environment or Environment()
        self.application: ApplicationConfig | None = None
        self.module: ModuleConfig | None = None
        self.provider: ProviderConfig | None = None
        self.consumer: ConsumerConfig | None = None
        self.monitor: MonitorConfig | None = None
        self.metrics: MetricsConfig | None = None
        self.metadata_report: MetadataReportConfig | None = None
        self.registries: list[RegistryConfig] = []
        self.protocols: list[ProtocolConfig] = []
        self.provider_models: dict[str, ProviderModel] = {}
        self.consumer_models: dict[str, ConsumerModel] = {}
        self.reserved: dict[int, socket.socket] = {}  # free ports we hold until a server listens on them
        self._random_ports: dict[str, int] = {}
        self._pools: dict[str, WorkerPool] = {}
        self._protocols: dict[str, Protocol] = {}
        self._registries: dict[str, Registry] = {}
        self._metadata_reports: dict[str, MetadataReport] = {}
        self._metrics_page: MetricsPage | None = None
        self._stay_ms: int | None = None
        self._warned: set[str] = set()
        self._later: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()  # two services may be first to need a registry
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # only for starting and ending the loop's thread

    # -- the loop ----------------------------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop all services run on, started on first use."""
        with self._lock:
            if self._loop is None:
                self._loop = uvloop.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="headrace-services", daemon=True
                )
                self._thread.start()
            return self._loop

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use the application's own loop; must come before anything is exported or referred to."""
        with self._lock:
            if self._loop not in (None, loop):
                raise ServicesError("the services already run on another event loop: attach before exporting")
            self._loop = loop

    @property
    def on_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Do `work` on the loop and wait for it, from any other thread."""
        loop = self.loop
        if self.on_loop:
            work.close()
            raise ServicesError(
                "a blocking call was made on the services' own event loop: use the method whose name ends in _async"
            )
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout)

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work` on the loop and await it, from this loop or another."""
        loop = self.loop
        if self.on_loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def later(self, seconds: float, action: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Do something after a while, unless the application ends before."""

        async def wait() -> None:
            await asyncio.sleep(seconds)
            await action()

        task = self.loop.create_task(wait())
        self._later.add(task)
        task.add_done_callback(self._later.discard)
        return task

    def warn(self, groups: Iterable[Iterable[str]]) -> None:
        """Log the settings' warnings, each once."""
        for sentence in dict.fromkeys(itertools.chain.from_iterable(groups)):
            if sentence not in self._warned:
                self._warned.add(sentence)
                logger.warning("%s", sentence)

    # -- protocols, registries, reports ------------------------------------------------------------------

    def protocol(self, name: str) -> Protocol:
        if name not in self._protocols:
            self._protocols[name] = points.PROTOCOLS.get(name)(self)
        return self._protocols[name]

    async def export(self, invoker: Invoker) -> Exporter:
        """Hand an invoker to the protocol its URL names, behind the filters that URL asks for."""
        url = invoker.url
        protocol = self.protocol(url.protocol)
        if url.protocol != "registry":
            invoker = build_chain(invoker, "provider")
            if self._metrics_page is not None and (url.get("metrics.port") or url.get("metrics.protocol")):
                invoker = self._metrics_page.provider(invoker, url.get("application"))
            # A rule may have changed them, and the latest service on a port decides for all.
            self.worker_pool(url).resize(url.get_int("threads", DEFAULT_THREADS), url.get_int("queues", 0))
        return await protocol.export(invoker)

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        """The invoker for a URL, behind the consumer's filters."""
        invoker = await self.protocol(url.protocol).refer(interface, url)
        return invoker if url.protocol == "registry" else build_chain(invoker, "consumer")

    async def registry(self, url: URL) -> Registry:
        """The registry at a URL, connected on first use and shared by all services that name it."""
        key = f"{url.identity}?group={url.get('group')}"
        async with self._connecting:
            if key not in self._registries:
                registry = points.REGISTRIES.get(url.protocol)(url)
                await registry.start()
                self._registries[key] = registry
        return self._registries[key]

    async def report(self, url: URL) -> MetadataReport:
        """The metadata report at a URL, connected and shared in the same way."""
        key = f"{url.identity}?group={url.get('group')}"
        async with self._connecting:
            if key not in self._metadata_reports:
                report = points.METADATA_REPORTS.get(url.protocol)(url)
                await report.start()
                self._metadata_reports[key] = report
        return self._metadata_reports[key]

    # -- metrics -----------------------------------------------------------------------------------------

    def open_metrics(self, config: MetricsConfig | None, application: str) -> MetricsPage | None:
        """The page that the metrics settings of a service or reference ask for, opened by the first to ask."""
        if config is None or (config.port is None and config.protocol is None):
            return None
        if (config.protocol or "").lower() == "dubbo":
            self.warn([[_NO_DUBBO_METRICS]])
            return None
        host = config.host or _METRICS_HOST
        address = f"{host}:{_METRICS_PORT if config.port is None else config.port}"
        if self._metrics_page is None:
            from headrace.services.metrics_page import MetricsPage  # only those who ask need its library

            self._metrics_page = MetricsPage(address, application, self)
            logger.info("Metrics are served at http://%s:%d/metrics", host, self._metrics_page.port)
        elif self._metrics_page.address != address:
            raise ConfigError(
                f"metrics: {address} is asked for, but an application has one page, "
                f"which is at {self._metrics_page.address}: give all its services the same"
            )
        return self._metrics_page

    @property
    def metrics_port(self) -> int | None:
        """The port at which metrics are served, or None."""
        return None if self._metrics_page is None else self._metrics_page.port

    def connections(self) -> Iterable[OpenConnections]:
        return itertools.chain.from_iterable(each.connections() for each in list(self._protocols.values()))

    def connected_registries(self) -> Iterable[Registry]:
        return list(self._registries.values())

    def random_port(self, protocol: str, host: str, first: int) -> int:
        """The free port of a protocol that was given none, the same for all its services."""
        if protocol not in self._random_ports:
            reserved = reserve_port(host, first)
            port = self._random_ports[protocol] = int(reserved.getsockname()[1])
            self.reserved[port] = reserved
            logger.warning("Use random available port(%d) for protocol %s", port, protocol)
        return self._random_ports[protocol]

    def worker_pool(self, url: URL) -> WorkerPool:
        """The threads in which the plain methods behind one port run."""
        exported = URL.parse(url.get_decoded("export")) if url.get("export") else url
        key = f"{exported.protocol}-{exported.get('bind.port', str(exported.port))}"
        if key not in self._pools:
            self._pools[key] = WorkerPool(
                self.loop,
                exported.get_int("threads", DEFAULT_THREADS),
                exported.get_int("queues", 0),
                f"DubboServerHandler-{key}",
            )
        return self._pools[key]

    # -- the end -----------------------------------------------------------------------------------------

    @property
    def shutdown_wait_ms(self) -> int:
        """How long consumers get to notice that a provider is leaving, and calls under way to finish."""
        text = self.environment.get(SHUTDOWN_WAIT)
        if text is None:
            application = self.application.shutwait if self.application else None
            chosen = application if self._stay_ms is None else self._stay_ms
            return DEFAULT_SHUTDOWN_WAIT_MS if chosen is None else chosen
        if not text.isdecimal():
            raise ConfigError(f"{SHUTDOWN_WAIT}={text} is not a number of milliseconds")
        return int(text)

    def stay_for(self, wait_ms: int | None) -> None:
        """What a service asks for with its provider's `wait` or its application's `shutwait`; the longest counts."""
        if wait_ms is not None:
            self._stay_ms = max(wait_ms, self._stay_ms or 0)

    async def shutdown_async(self) -> None:
        """Deregister everything, let calls under way finish, close."""
        if self._loop is not None:
            await self.run_async(self._shutdown())
            await asyncio.to_thread(self._leave_loop)

    def shutdown(self) -> None:
        """Deregister everything, let calls under way finish, close."""
        if self._loop is not None:
            self.run(self._shutdown())
            self._leave_loop()

    def _leave_loop(self) -> None:
        """End the thread of our own loop; an attached loop keeps running."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(_cancel_the_rest(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _shutdown(self) -> None:
        for task in list(self._later):
            task.cancel()
        for registry in self._registries.values():
            await registry.unregister_all()
        protocols = sorted(self._protocols.values(), key=lambda p: p.name != "registry")
        for protocol in protocols:
            try:
                await protocol.destroy()
            except Exception:
                logger.warning("Closing the protocol %s failed", protocol.name, exc_info=True)
        for registry in self._registries.values():
            await registry.close()
        for report in self._metadata_reports.values():
            await report.close()
        for pool in self._pools.values():
            pool.close()
        for held in self.reserved.values():
            held.close()
        if self._metrics_page is not None:
            page, self._metrics_page = self._metrics_page, None
            await asyncio.to_thread(page.close)
        self._pools.clear()
        self.reserved.clear()
        self._random_ports.clear()
        self._protocols.clear()
        self._registries.clear()
        self._metadata_reports.clear()
        self._connecting = asyncio.Lock()
        flush_access_logs()
        self.provider_models.clear()
        self.consumer_models.clear()


async def _cancel_the_rest() -> None:
    """What still runs on a loop that ends, such as calls to be tried again later: as at the end of `asyncio.run`."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=_CANCEL_SECONDS)


_default: Runtime | None = None


def default_runtime() -> Runtime:
    """The runtime used by everything that was not given one."""
    global _default
    if _default is None:
        _default = Runtime()
    return _default
