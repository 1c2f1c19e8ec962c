"""The Prometheus page of one application's services: calls, connections, exported services and registries.

One an application, opened by the first export or reference that asks for it. Names are those of Dubbo 3 where it has
one. Numbers are formatted when they are asked for, in the page's own thread, from what the event loop counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from headrace.client.errors import ConfigError as ClientConfigError
from headrace.client.errors import MissingExtra, require
from headrace.client.metrics_port import MetricsPort
from headrace.services.errors import ConfigError
from headrace.services.filters.metrics import (
    BUCKETS_MS,
    OTHER,
    Failure,
    MethodCalls,
    MetricsFilter,
    ReferenceMetricsFilter,
    ServiceCalls,
    ServiceKey,
)
from headrace.services.invoker import Invoker
from headrace.services.models import ProviderModel
from headrace.services.protocols.base import OpenConnections
from headrace.services.registry.base import Registry

_SERVICE: Final = ["application_name", "interface", "group", "version"]
_METHOD: Final = [*_SERVICE, "method"]
_FAILURES: Final = {
    Failure.BUSINESS: "the implementation raised an exception",
    Failure.TIMEOUT: "no answer came in time",
    Failure.LIMIT: "a limit on calls or a full thread pool refused them",
    Failure.NETWORK: "the provider could not be reached, or refused them",
    Failure.UNAVAILABLE: "there was no provider",
    Failure.CODEC: "their arguments could not be sent",
    Failure.FORBIDDEN: "the token was wrong",
    Failure.CANCELLED: "the caller gave up",
    Failure.UNKNOWN: "any other reason",
}


class Observed(Protocol):
    """What an application's runtime tells of itself for each scrape."""

    provider_models: dict[str, ProviderModel]

    def connections(self) -> Iterable[OpenConnections]: ...

    def connected_registries(self) -> Iterable[Registry]: ...


class MetricsPage:
    """Measures what is put behind `provider` and `reference`, and serves all of it at `address`."""

    def __init__(self, address: str, application: str, observed: Observed) -> None:
        self.address = address
        self._application = application
        self._observed = observed
        self._calls: dict[ServiceKey, ServiceCalls] = {}
        try:
            self._port = MetricsPort(address)
            self._core: Any = require("prometheus_client.core", "metrics", "a metrics port")
            self._port.registry.register(self)
            self._port.open()
        except (ClientConfigError, MissingExtra) as error:
            raise ConfigError(str(error)) from None

    @property
    def port(self) -> int:
        """The port actually bound."""
        assert self._port.port is not None  # opened when it was made
        return self._port.port

    def close(self) -> None:
        self._port.close()

    # -- what is measured --------------------------------------------------------------------------------

    def provider(self, invoker: Invoker, application: str) -> Invoker:
        url = invoker.url
        key = ServiceKey(
            "provider", application, invoker.interface.name, url.get("group"), url.get("version")
        )
        return MetricsFilter(invoker, self._calls.setdefault(key, ServiceCalls()))

    def reference(self, invoker: Invoker, application: str, group: str, version: str) -> Invoker:
        key = ServiceKey("consumer", application, invoker.interface.name, group, version)
        return ReferenceMetricsFilter(invoker, self._calls.setdefault(key, ServiceCalls()))

    # -- a scrape ----------------------------------------------------------------------------------------

    def collect(self) -> Iterator[Any]:
        services = list(self._calls.items())
        for side in ("provider", "consumer"):
            yield from self._of_side(side, [each for each in services if each[0].side == side])
        yield self._available(services)
        yield self._exported()
        yield self._open_connections()
        yield from self._registries()

    def _of_side(self, side: str, services: list[tuple[ServiceKey, ServiceCalls]]) -> Iterable[Any]:
        start = f"dubbo_{side}"
        counter, gauge = self._core.CounterMetricFamily, self._core.GaugeMetricFamily
        total = counter(f"{start}_requests", "Calls", labels=_METHOD)
        succeeded = counter(f"{start}_requests_succeed", "Calls that returned a result", labels=_METHOD)
        failed = counter(f"{start}_requests_failed", "Calls that failed, for any reason", labels=_METHOD)
        under_way = [
            gauge(f"{start}_requests_{name}", "Calls under way", labels=_METHOD)
            for name in ("processing", "processing_total")  # Dubbo 3.1's name and 3.2's
        ]
        kinds = {
            kind: counter(f"{start}_requests_{kind.value}", f"Calls that failed: {text}", labels=_METHOD)
            for kind, text in _FAILURES.items()
        }
        rt = f"{start}_rt_milliseconds"
        durations = self._core.HistogramMetricFamily(rt, "Duration of calls in milliseconds", labels=_METHOD)
        average = gauge(f"{rt}_avg", "Mean duration since the start", labels=_METHOD)
        shortest = gauge(f"{rt}_min", "Shortest call since the start", labels=_METHOD)
        longest = gauge(f"{rt}_max", "Longest call since the start", labels=_METHOD)
        last = gauge(f"{rt}_last", "Duration of the last call", labels=_METHOD)
        for key, service in services:
            for method, calls in list(service.methods.items()):
                if method == OTHER and not calls.total:
                    continue
                labels = [*key[1:], method]
                failures = dict(calls.failures)
                total.add_metric(labels, calls.total)
                succeeded.add_metric(labels, calls.succeeded)
                failed.add_metric(labels, sum(failures.values()))
                for processing in under_way:
                    processing.add_metric(labels, calls.processing)
                for kind, number in failures.items():
                    kinds[kind].add_metric(labels, number)
                buckets = _cumulative(calls)
                durations.add_metric(labels, buckets, calls.sum_ms)
                count = buckets[-1][1]
                if count:
                    average.add_metric(labels, calls.sum_ms / count)
                    shortest.add_metric(labels, calls.min_ms)
                    longest.add_metric(labels, calls.max_ms)
                    last.add_metric(labels, calls.last_ms)
        return [
            total,
            succeeded,
            failed,
            *under_way,
            *kinds.values(),
            durations,
            average,
            shortest,
            longest,
            last,
        ]

    def _available(self, services: list[tuple[ServiceKey, ServiceCalls]]) -> Any:
        available = self._core.GaugeMetricFamily(
            "headrace_services_provider_available",
            "1 while a reference knows a provider that takes calls",
            labels=_SERVICE,
        )
        for key, service in services:
            references = list(service.references)
            if references:
                available.add_metric(key[1:], float(all(each.is_available for each in references)))
        return available

    def _exported(self) -> Any:
        family = self._core.GaugeMetricFamily(
            "headrace_services_exported", "Exports of a service", labels=[*_SERVICE, "protocol"]
        )
        exports = Counter(
            (url.get("application"), url.interface, url.get("group"), url.get("version"), url.protocol)
            for model in list(self._observed.provider_models.values())
            for url in list(model.urls)
            if url.get("scope").lower() != "none"
        )
        for labels, number in exports.items():
            family.add_metric(labels, number)
        return family

    def _open_connections(self) -> Any:
        family = self._core.GaugeMetricFamily(
            "headrace_services_connections",
            "Open connections: of a provider's port, or to a provider",
            labels=["application_name", "side", "protocol", "address"],
        )
        for each in self._observed.connections():
            family.add_metric([self._application, each.side, each.protocol, each.address], each.number)
        return family

    def _registries(self) -> Iterable[Any]:
        labels = ["application_name", "registry", "group"]
        gauge = self._core.GaugeMetricFamily
        start = "headrace_services_registry"
        connected = gauge(f"{start}_connected", "1 while the registry can be reached", labels=labels)
        registered = gauge(f"{start}_registered", "URLs registered there", labels=labels)
        subscribed = gauge(f"{start}_subscribed", "Subscriptions there", labels=labels)
        failed = gauge(f"{start}_retrying", "Operations that failed and are tried again", labels=labels)
        for registry in self._observed.connected_registries():
            url = registry.url
            place = url.address or f"/{url.path}"
            where = [self._application, f"{url.protocol}://{place}", url.get("group")]
            connected.add_metric(where, float(registry.is_available))
            registered.add_metric(where, len(registry.registered))
            subscribed.add_metric(where, len(registry.subscribed))
            failed.add_metric(where, registry.retrying)
        return [connected, registered, subscribed, failed]


def _cumulative(calls: MethodCalls) -> list[tuple[str, float]]:
    """The buckets as Prometheus wants them: each with all shorter ones."""
    bounds = [*(str(bound) for bound in BUCKETS_MS), "+Inf"]
    sums, before = [], 0
    for number in list(calls.buckets):
        before += number
        sums.append(float(before))
    return list(zip(bounds, sums, strict=True))
