"""The providers of a service as the registry lists them, kept up to date.

Each notification lists all current URLs of one category. New providers are connected to, missing ones are closed,
those with a changed URL are replaced; a call under way finishes where it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from headrace.services import points
from headrace.services.cluster import tags
from headrace.services.cluster.configurator import Configurator
from headrace.services.cluster.directory_base import Directory
from headrace.services.cluster.router import Router, route, to_routers
from headrace.services.cluster.rules import configure, number_problem, to_configurators
from headrace.services.errors import RpcCode, RpcException, ServicesError
from headrace.services.generic import is_generic_call
from headrace.services.interface import InterfaceModel
from headrace.services.invocation import Invocation
from headrace.services.invoker import Invoker
from headrace.services.net import local_host
from headrace.services.protocols.base import ProtocolRuntime
from headrace.services.registry.base import Registry
from headrace.services.release import RELEASE
from headrace.services.url import URL, decode, parse_query, split_commas

logger = logging.getLogger("headrace.services.cluster")

# A consumer's parameters that must not hide the provider's own.
_PROVIDERS_OWN = (
    "group",
    "release",
    "dubbo",
    "version",
    "methods",
    "timestamp",
    "dubbo.tag",
    "headrace",
    "pid",
)
# A provider's parameters that mean nothing to a consumer.
_PROVIDERS_ONLY = (
    "threadname",
    "threadpool",
    "corethreads",
    "threads",
    "queues",
    "alive",
    "transporter",
    "dispatcher",
    "client.config",
)


def merge_url(provider: URL, consumer: dict[str, str]) -> URL:
    """A provider's URL as a consumer uses it: its own settings win over the provider's."""
    merged = {k: v for k, v in provider.parameters.items() if k not in _PROVIDERS_ONLY}
    merged |= {k: v for k, v in consumer.items() if k not in _PROVIDERS_OWN and v}
    if provider.get("application"):
        merged["remote.application"] = provider.get("application")
    filters = [provider.get("reference.filter"), consumer.get("reference.filter", "")]
    if all(filters):
        merged["reference.filter"] = ",".join(filters)
    return provider.replace(parameters=merged)


async def refer_through_registry(
    runtime: ProtocolRuntime, registry: Registry, interface: InterfaceModel, registry_url: URL
) -> Invoker:
    """Register as a consumer, subscribe, and join what is found into one invoker."""
    query = parse_query(decode(registry_url.get("refer")))
    directory = RegistryDirectory(runtime, registry, interface, registry_url, query)
    await directory.start()
    cluster = points.CLUSTERS.get(directory.url.get("cluster", "failover"))
    return cluster(directory)


class RegistryDirectory(Directory):
    """A directory that listens to a registry."""

    def __init__(
        self,
        runtime: ProtocolRuntime,
        registry: Registry,
        interface: InterfaceModel,
        registry_url: URL,
        query: dict[str, str],
    ) -> None:
        host = query.pop("register.ip", "") or local_host()
        self._origin = URL("consumer", host, 0, interface.name, query)
        super().__init__(interface, self._origin.replace(host=registry_url.host, port=registry_url.port))
        self._runtime = runtime
        self._registry = registry
        self._registry_url = registry_url
        self._query = query
        self._consumer_url = self._origin.add({"category": "consumers", "check": "false"})
        self._subscription = self._origin.add({"category": "providers,configurators,routers"})
        self._providers: list[URL] = []
        self._configurators: list[Configurator] = []
        self._routers: list[Router] = []
        self._invokers: dict[str, Invoker] = {}
        self._listed: Sequence[Invoker] = ()
        self._tagged = False  # whether tags decide anything
        self._forbidden = False
        self._changing = asyncio.Lock()
        self._destroyed = False

    async def start(self) -> None:
        if self._registry_url.get_bool("register", True):
            await self._registry.register(self._consumer_url)
        await self._registry.subscribe(self._subscription, self)

    # -- what cluster strategies ask ---------------------------------------------------------------------

    def candidates(self, invocation: Invocation) -> Sequence[Invoker]:
        if self._forbidden:
            raise RpcException(
                f"No provider available from registry {self._registry_url.address} for service "
                f"{self._origin.service_key} on consumer {local_host()} use dubbo version {RELEASE}, "
                "please check status of providers(disabled, not registered or in blacklist).",
                RpcCode.FORBIDDEN,
                reason=f"no provider of {self._origin.service_key} is registered at {self._registry_url.address}",
            )
        invokers = self._listed
        if self._routers:
            invokers = route(self._routers, invokers, self._origin, invocation)
        if self._tagged or tags.FORCE in invocation.attachments:
            invokers = tags.route_by_tag(invokers, self._origin, invocation)
        return self._with_classes(invokers) if is_generic_call(invocation) else invokers

    def _with_classes(self, invokers: Sequence[Invoker]) -> Sequence[Invoker]:
        """Those with a protocol that keeps classes, so a generic caller gets the same answer from each; else all."""
        keeping = [
            invoker
            for invoker in invokers
            if invoker.is_available and self._runtime.protocol(invoker.url.protocol).keeps_classes
        ]
        return keeping or invokers

    @property
    def is_available(self) -> bool:
        return not self._destroyed and any(invoker.is_available for invoker in self._listed)

    # -- what the registry says --------------------------------------------------------------------------

    async def notify(self, urls: list[URL]) -> None:
        async with self._changing:
            if self._destroyed:
                return
            category = _category(urls)
            if category == "configurators":
                self._configurators = to_configurators(urls)
            elif category == "routers":
                self._routers = to_routers(urls)
                return
            elif category == "providers":
                self._providers = urls
            else:
                return
            await self._refresh()
            changed = configure(self._configurators, self._origin)
            for (
                invoker
            ) in self._listed:  # what the consumer leaves open, such as retries, its providers may say
                changed = changed.add_if_absent(invoker.url.parameters)
            self.url = changed.replace(host=self._registry_url.host, port=self._registry_url.port)

    async def _refresh(self) -> None:
        present = [url for url in self._providers if url.protocol != "empty"]
        self._forbidden = bool(self._providers) and not present
        wanted = {url.full: url for url in self._merged(present)}
        invokers: dict[str, Invoker] = {}
        for key, url in wanted.items():
            known = self._invokers.get(key)
            if known is not None:
                invokers[key] = known
                continue
            try:
                invokers[key] = await self._runtime.refer(self.interface, url)
            except ServicesError as error:
                logger.error(
                    "Failed to refer invoker for interface:%s,url:(%s): %s", self.interface.name, url, error
                )
        gone = [invoker for key, invoker in self._invokers.items() if key not in invokers]
        if gone or len(invokers) != len(self._invokers):
            logger.info(
                "Providers of %s: %s", self.interface.name, [i.url.address for i in invokers.values()]
            )
        self._invokers = invokers
        self._listed = tuple(invokers.values())
        self._tagged = bool(self._origin.get(tags.FORCE)) or any(
            invoker.url.get(tags.TAG) for invoker in self._listed
        )
        for invoker in gone:
            self._runtime.later(0, invoker.destroy)

    def _merged(self, providers: Iterable[URL]) -> Iterable[URL]:
        accepted = split_commas(self._query.get("protocol", ""))
        for provider in providers:
            if accepted and provider.protocol not in accepted:
                continue
            if not points.PROTOCOLS.has(provider.protocol):
                logger.error(
                    "Unsupported protocol %s in notified url: %s from registry %s, supported protocol: %s",
                    provider.protocol,
                    provider,
                    self._registry_url.address,
                    points.PROTOCOLS.names(),
                )
                continue
            problem = number_problem(provider)
            if problem is not None:  # it would fail every call that considers it
                logger.error("The provider %s is left out: %s", provider, problem)
                continue
            url = configure(self._configurators, merge_url(provider, self._query))
            enabled = (
                not url.get_bool("disabled", False) if url.get("disabled") else url.get_bool("enabled", True)
            )
            if enabled:
                yield url.add({"check": "false"})

    async def destroy(self) -> None:
        if self._destroyed:
            return
        self._destroyed = True
        # Even while the registry is away: otherwise it would register us again on its return.
        try:
            await self._registry.unregister(self._consumer_url)
            await self._registry.unsubscribe(self._subscription, self)
        except ServicesError as error:
            logger.warning("%s", error)
        async with self._changing:  # what is being connected to now must not be left behind
            invokers, self._invokers, self._listed = self._invokers, {}, ()
        for invoker in invokers.values():
            await invoker.destroy()


def _category(urls: Sequence[URL]) -> str:
    first = urls[0]
    if first.protocol in ("override", "absent"):
        return "configurators"
    if first.protocol in ("route", "condition"):
        return "routers"
    return first.get("category", "providers")
