"""The Prometheus page of services: what a real provider and a real consumer tell of the calls between them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.services import (
    URL,
    Bootstrap,
    ConfigError,
    JavaException,
    MethodConfig,
    MetricsConfig,
    ProtocolConfig,
    ProviderConfig,
    ReferenceConfig,
    RegistryConfig,
    RpcException,
    interface,
)
from headrace.services.filters.metrics import MetricsFilter
from headrace.services.invoker import Invoker
from headrace.services.protocols.dubbo.protocol import DubboProtocol
from tests.waiting import until


@interface("com.acme.Till")
class Till:
    """Counts what it is asked to; some calls wait until they are let go."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def add(self, a: int, b: int) -> int:
        return a + b

    def fail(self) -> None:
        raise ValueError("sold out")

    def wait(self) -> str:
        return "open" if self.open.wait(60) else "closed"

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def never_called(self) -> None: ...


class Page:
    """What an application's page says now: samples by name and labels."""

    def __init__(self, app: Bootstrap) -> None:
        self._app = app

    def text(self) -> str:
        url = f"http://127.0.0.1:{self._app.runtime.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return str(answer.read().decode())

    def samples(self, name: str, **labels: str) -> list[tuple[dict[str, str], float]]:
        return [
            (sample.labels, sample.value)
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name: str, **labels: str) -> float:
        """The one sample with this name and these labels."""
        ((_, value),) = self.samples(name, **labels)
        return value


@pytest.fixture
def shop(application: Callable[..., Bootstrap]) -> Callable[..., tuple[Till, Bootstrap, Page]]:
    """A provider that serves metrics, with its implementation."""

    def make(**settings: Any) -> tuple[Till, Bootstrap, Page]:
        app = application("shop", metrics="127.0.0.1:0")
        till = Till()
        app.service(till, scope="remote", group="eu", version="1.0", **settings)
        app.start()
        return till, app, Page(app)

    return make


def refer(
    application: Callable[..., Bootstrap], provider: Bootstrap, **settings: Any
) -> tuple[Till, Bootstrap, Page]:
    app = application("web", metrics="127.0.0.1:0")
    url = provider.services[0].urls[0]
    settings = {"retries": 0, "timeout": 60_000, **settings}
    till = app.reference(Till, url=f"dubbo://{url.address}", group="eu", version="1.0", **settings)
    return till, app, Page(app)


def test_both_sides_count_calls_by_service_and_method(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    _, provider, provider_page = shop()
    till, _, consumer_page = refer(application, provider)
    assert [till.add(1, n) for n in range(3)] == [1, 2, 3]
    with pytest.raises(JavaException, match="sold out"):
        till.fail()
    sides = [("provider", "shop", provider_page), ("consumer", "web", consumer_page)]
    for side, name, page in sides:
        service = {
            "application_name": name,
            "interface": "com.acme.Till",
            "group": "eu",
            "version": "1.0",
        }
        add, fail = {**service, "method": "add"}, {**service, "method": "fail"}
        start = f"dubbo_{side}"
        assert page.value(f"{start}_requests_total", **add) == 3
        assert page.value(f"{start}_requests_succeed_total", **add) == 3
        assert page.value(f"{start}_requests_failed_total", **add) == 0
        assert page.value(f"{start}_requests_total", **fail) == 1
        assert page.value(f"{start}_requests_succeed_total", **fail) == 0
        assert page.value(f"{start}_requests_failed_total", **fail) == 1
        assert page.value(f"{start}_requests_business_failed_total", **fail) == 1
        assert page.value(f"{start}_requests_failed_network_total", **fail) == 0
        assert page.value(f"{start}_requests_total", **{**service, "method": "neverCalled"}) == 0


def test_durations_are_a_histogram_with_the_figures_of_dubbo(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    _, provider, page = shop()
    till, _, _ = refer(application, provider)
    till.pause(0.03)
    till.pause(0.03)
    start = "dubbo_provider_rt_milliseconds"
    assert page.value(f"{start}_count", method="pause") == 2
    total = page.value(f"{start}_sum", method="pause")
    assert total >= 2 * 30
    assert page.value(f"{start}_avg", method="pause") == pytest.approx(total / 2)
    assert 30 <= page.value(f"{start}_min", method="pause") <= page.value(f"{start}_max", method="pause")
    buckets = {labels["le"]: value for labels, value in page.samples(f"{start}_bucket", method="pause")}
    assert buckets["25.0"] == 0
    assert buckets["+Inf"] == 2
    assert list(buckets.values()) == sorted(buckets.values())
    assert page.samples(f"{start}_avg", method="neverCalled") == []


def test_calls_under_way_are_counted_until_they_end(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    behind, provider, provider_page = shop()
    till, _, consumer_page = refer(application, provider)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(till.wait) for _ in range(2)]
        until(lambda: provider_page.value("dubbo_provider_requests_processing", method="wait") == 2)
        for name in ("processing", "processing_total"):
            assert consumer_page.value(f"dubbo_consumer_requests_{name}", method="wait") == 2
        assert provider_page.value("dubbo_provider_requests_succeed_total", method="wait") == 0
        behind.open.set()
        assert [answer.result(60) for answer in answers] == ["open", "open"]
    assert consumer_page.value("dubbo_consumer_requests_processing", method="wait") == 0
    assert consumer_page.value("dubbo_consumer_requests_succeed_total", method="wait") == 2
    assert provider_page.value("dubbo_provider_requests_processing", method="wait") == 0


def test_refused_calls_are_counted_by_what_refused_them(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    behind, provider, page = shop(token="secret", methods=[MethodConfig(name="wait", executes=1)])
    till, _, _ = refer(application, provider, parameters={"token": "guess"})
    with pytest.raises(RpcException, match="Invalid token"):
        till.add(1, 1)
    assert page.value("dubbo_provider_requests_failed_forbidden_total", method="add") == 1
    address = provider.services[0].urls[0].address
    admitted = application("admitted").reference(
        Till, url=f"dubbo://{address}?token=secret", group="eu", version="1.0", retries=0, timeout=60_000
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(admitted.wait)
        until(lambda: page.value("dubbo_provider_requests_processing", method="wait") == 1)
        with pytest.raises(RpcException, match="limited"):
            admitted.wait()
        behind.open.set()
        assert first.result(60) == "open"
    assert page.value("dubbo_provider_requests_limit_total", method="wait") == 1
    assert page.value("dubbo_provider_requests_succeed_total", method="wait") == 1


def test_a_full_pool_counts_as_a_limit(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    behind, provider, page = shop(provider=ProviderConfig(threads=1))
    till, _, _ = refer(application, provider)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(till.wait)
        until(lambda: page.value("dubbo_provider_requests_processing", method="wait") == 1)
        with pytest.raises(RpcException, match="EXHAUSTED"):
            till.wait()
        behind.open.set()
        assert first.result(60) == "open"
    assert page.value("dubbo_provider_requests_limit_total", method="wait") == 1


def test_a_consumer_tells_timeouts_from_a_network_that_failed(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    behind, provider, _ = shop()
    till, _, page = refer(
        application, provider, methods=[MethodConfig(name="wait", timeout=50)], reconnect=False
    )
    with pytest.raises(RpcException, match="timeout"):
        till.wait()
    behind.open.set()
    provider.stop()
    with pytest.raises(RpcException):
        till.add(1, 1)
    assert page.value("dubbo_consumer_requests_timeout_total", method="wait") == 1
    assert page.value("dubbo_consumer_requests_failed_network_total", method="add") == 1
    until(lambda: page.value("headrace_services_provider_available", interface="com.acme.Till") == 0)


def test_a_call_without_any_provider_counts_as_unavailable(
    application: Callable[..., Bootstrap], tmp_path: Path
) -> None:
    app = application("web", registry=f"embedded://{tmp_path}/registry", metrics="127.0.0.1:0")
    till = app.reference(Till, check=False)
    with pytest.raises(RpcException, match="No provider available"):
        till.add(1, 1)
    page = Page(app)
    assert page.value("dubbo_consumer_requests_failed_service_unavailable_total", method="add") == 1
    assert page.value("headrace_services_provider_available", interface="com.acme.Till") == 0


def test_a_call_given_up_counts_as_cancelled(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    _, provider, _ = shop()
    app = application("web", metrics="127.0.0.1:0")
    page = Page(app)

    async def give_up() -> None:
        address = provider.services[0].urls[0].address
        till = await app.reference_async(
            Till, url=f"dubbo://{address}", group="eu", version="1.0", timeout=60_000
        )
        call = asyncio.ensure_future(till.sleep(60))

        def under_way() -> bool:
            return page.value("dubbo_consumer_requests_processing", method="sleep") == 1

        await asyncio.to_thread(until, under_way)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    asyncio.run(give_up())
    until(lambda: page.value("dubbo_consumer_requests_processing", method="sleep") == 0)
    assert page.value("dubbo_consumer_requests_failed_cancelled_total", method="sleep") == 1


def test_a_generic_call_counts_for_the_method_it_names_and_no_other_name_makes_a_series(
    application: Callable[..., Bootstrap], shop: Callable[..., tuple[Till, Bootstrap, Page]]
) -> None:
    _, provider, page = shop()
    app = application("cli")
    generic: ReferenceConfig[Any] = ReferenceConfig(
        interface="com.acme.Till",
        generic=True,
        url=f"dubbo://{provider.services[0].urls[0].address}",
        group="eu",
        version="1.0",
        retries=0,
        runtime=app.runtime,
    )
    proxy = generic.get()
    assert proxy.invoke("add", None, [1, 2]) == 3
    assert page.samples("dubbo_provider_requests_total", method="other") == []
    for number in range(5):
        with pytest.raises(RpcException, match="No such method"):
            proxy.invoke(f"made_up_{number}", None, [])
    assert page.value("dubbo_provider_requests_total", method="add") == 1
    assert page.value("dubbo_provider_requests_unknown_failed_total", method="other") == 5
    methods = {labels["method"] for labels, _ in page.samples("dubbo_provider_requests_total")}
    assert methods == {"add", "fail", "wait", "pause", "sleep", "neverCalled", "other"}


def test_the_page_tells_connections_exports_and_the_registry(
    application: Callable[..., Bootstrap], tmp_path: Path
) -> None:
    registry = RegistryConfig(address=f"embedded://{tmp_path}/registry")
    both = [ProtocolConfig(name=name, host="127.0.0.1", port=-1) for name in ("dubbo", "rest")]
    provider = application("shop", registry=registry, protocol=both, metrics="127.0.0.1:0")
    provider.service(Till(), version="1.0")
    provider.start()
    page = Page(provider)
    exported = page.samples("headrace_services_exported", interface="com.acme.Till", version="1.0")
    assert {(labels["protocol"], value) for labels, value in exported} == {("dubbo", 1), ("rest", 1)}
    assert page.value("headrace_services_registry_connected") == 1
    assert page.value("headrace_services_registry_registered") == 2
    assert page.value("headrace_services_registry_retrying") == 0
    assert page.value("headrace_services_connections", side="provider", protocol="dubbo") == 0
    consumer = application("web", registry=registry, metrics="127.0.0.1:0")
    till = consumer.reference(Till, version="1.0", protocol="dubbo")
    assert till.add(1, 1) == 2
    assert page.value("headrace_services_connections", side="provider", protocol="dubbo") == 1
    consumer_page = Page(consumer)
    assert consumer_page.value("headrace_services_connections", side="consumer", protocol="dubbo") == 1
    assert consumer_page.value("headrace_services_provider_available", version="1.0") == 1
    assert consumer_page.value("headrace_services_registry_connected") == 1
    provider.services[0].unexport()
    assert page.samples("headrace_services_exported") == []
    until(lambda: page.value("headrace_services_registry_registered") == 0)


def test_calls_that_need_no_task_are_counted_too(application: Callable[..., Bootstrap]) -> None:
    @interface("com.acme.Sum")
    class Sum:
        def add(self, a: int, b: int) -> int:
            return a + b

    provider = application("shop", metrics="127.0.0.1:0")
    service = provider.service(Sum(), scope="remote", dispatcher="direct")
    provider.start()
    sums = application("web").reference(Sum, url=f"dubbo://{service.urls[0].address}", timeout=60_000)
    assert sums.add(1, 2) == 3
    protocol = provider.runtime.protocol("dubbo")
    assert isinstance(protocol, DubboProtocol)
    assert not any(invoker.suspends for invoker in protocol._invokers.values())
    assert Page(provider).value("dubbo_provider_requests_succeed_total", method="add") == 1


def test_calls_within_the_process_count_on_both_sides(application: Callable[..., Bootstrap]) -> None:
    app = application("shop", metrics="127.0.0.1:0")
    app.service(Till(), scope="local")
    app.start()
    assert app.reference(Till).add(1, 2) == 3
    page = Page(app)
    for side in ("provider", "consumer"):
        assert page.value(f"dubbo_{side}_requests_succeed_total", method="add") == 1


def test_counts_go_on_when_a_rule_exports_a_service_anew(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    settings = registry()
    provider = application("shop", registry=settings, metrics="127.0.0.1:0")
    service = provider.service(Till(), scope="remote")
    provider.start()
    page = Page(provider)
    address = service.urls[0].address
    till = application("web").reference(Till, url=f"dubbo://{address}", retries=0)
    assert till.add(1, 1) == 2

    async def rule() -> None:
        (held,) = provider.runtime.connected_registries()
        await held.register(
            URL.parse("override://0.0.0.0/com.acme.Till?category=configurators&dynamic=false&executes=9")
        )

    provider.runtime.run(rule())
    protocol = provider.runtime.protocol("dubbo")
    assert isinstance(protocol, DubboProtocol)

    def exported_anew() -> bool:
        return any(invoker.url.get("executes") == "9" for invoker in protocol._invokers.values())

    until(exported_anew)
    assert till.add(1, 1) == 2
    assert page.value("dubbo_provider_requests_total", method="add") == 2


def test_properties_ask_for_the_page_as_in_dubbo(application: Callable[..., Bootstrap]) -> None:
    app = application(
        properties={"dubbo.metrics.protocol": "prometheus", "dubbo.metrics.port": "0"},
    )
    app.service(Till())
    app.start()
    assert "dubbo_provider_requests_total" in Page(app).text()


def test_nothing_is_measured_unless_it_is_asked_for(application: Callable[..., Bootstrap]) -> None:
    app = application()
    app.service(Till(), scope="remote")
    app.start()
    protocol = app.runtime.protocol("dubbo")
    assert isinstance(protocol, DubboProtocol)
    (invoker,) = protocol._invokers.values()
    chain: list[Invoker] = [invoker]
    while hasattr(chain[-1], "inner"):
        chain.append(chain[-1].inner)
    assert len(chain) > 2
    assert not any(isinstance(each, MetricsFilter) for each in chain)
    assert app.runtime.metrics_port is None


def test_the_page_ends_with_the_application(application: Callable[..., Bootstrap]) -> None:
    app = application(metrics="127.0.0.1:0")
    app.service(Till())
    app.start()
    page = Page(app)
    port = app.runtime.metrics_port
    page.text()
    app.stop()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (MetricsConfig(protocol="jmx", port=1), "metrics: protocol=jmx is not one of prometheus, dubbo"),
        (MetricsConfig(port=70_000), "metrics: port=70000 is not a number from 0 to 65535"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(
    application: Callable[..., Bootstrap], metrics: MetricsConfig, said: str
) -> None:
    app = application(metrics=metrics)
    app.service(Till())
    with pytest.raises(ConfigError, match=said):
        app.start()


def test_metrics_over_dubbo_are_named_as_without_effect(
    application: Callable[..., Bootstrap], caplog: pytest.LogCaptureFixture
) -> None:
    app = application(metrics=MetricsConfig(protocol="dubbo", port=1))
    app.service(Till())
    app.start()
    assert app.runtime.metrics_port is None
    assert caplog.text.count("metrics.protocol=dubbo has no effect") == 1


def test_an_address_that_is_none_or_is_taken_is_named(application: Callable[..., Bootstrap]) -> None:
    with pytest.raises(ConfigError, match="'here' is no address for metrics: write HOST:PORT"):
        application(metrics="here")
    first = application(metrics="127.0.0.1:0")
    first.service(Till())
    first.start()
    second = application(metrics=f"127.0.0.1:{first.runtime.metrics_port}")
    second.service(Till())
    with pytest.raises(ConfigError, match=r"metrics cannot be served at .*: choose another port"):
        second.start()


def test_one_application_has_one_page(application: Callable[..., Bootstrap]) -> None:
    app = application(metrics="127.0.0.1:0")
    app.service(Till())
    app.start()
    other = app.service(Till(), version="2", metrics=MetricsConfig(host="127.0.0.2", port=0))
    with pytest.raises(ConfigError, match="an application has one page"):
        other.export()
