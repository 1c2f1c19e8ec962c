"""The URL of an export: every setting in it, the nearer winning; its host and port; the registries it goes to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.services import (
    ApplicationConfig,
    ArgumentConfig,
    Bootstrap,
    ConfigError,
    GenericService,
    MethodConfig,
    MetricsConfig,
    ModuleConfig,
    MonitorConfig,
    ProtocolConfig,
    ProviderConfig,
    RegistryConfig,
    Runtime,
    ServiceConfig,
    interface,
)
from headrace.services.config.complete import load_registries
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter
from headrace.services.url import URL

LOOPBACK = {"host": "127.0.0.1", "port": -1}


@interface("com.acme.Shop")
class Shop:
    def find(self, key: str, limit: int) -> list[str]:
        return [key] * limit

    def pay_now(self, amount: float) -> None: ...


def shop(app: Bootstrap, **settings: object) -> ServiceConfig[Shop]:
    return app.service(Shop(), interface=Shop, **settings)


# -- the URL -------------------------------------------------------------------------------------------------


def exported_url(make: Callable[..., Bootstrap], **settings: object) -> URL:
    given = dict(settings)
    app = make(
        **{k: given.pop(k) for k in list(given) if k in ("properties", "variables", "protocol", "provider")}
    )
    config = shop(app, scope="none", **given)
    config.export()
    return config.urls[0]


def test_the_url_carries_every_setting(application: Callable[..., Bootstrap]) -> None:
    url = exported_url(
        application,
        application=ApplicationConfig(name="shop", version="3", owner="anna,bob", organization="acme"),
        module=ModuleConfig(name="stock", version="2"),
        provider=ProviderConfig(timeout=100, retries=5, parameters={"from-provider": "yes"}),
        protocol=ProtocolConfig(name="dubbo", threads=10, payload=1000, parameters={"x": "1"}, **LOOPBACK),
        metrics=MetricsConfig(port=20888, protocol="dubbo"),
        group="g",
        version="1.0",
        timeout=200,
        document="http://doc/a b",
        executes=3,
        weight=50,
        accesslog=True,
        filter="token",
        methods=[
            MethodConfig(name="find", timeout=7, retry=False),
            MethodConfig(name="pay_now", retries=1, retry=True, executes=2, return_=False),
        ],
    )
    assert url.protocol == "dubbo"
    expected = {
        "side": "provider",
        "dubbo": "2.0.2",
        "release": "2.7.3",
        "application": "shop",
        "application.version": "3",
        "owner": "anna,bob",
        "organization": "acme",
        "module": "stock",
        "module.version": "2",
        "from.provider": "yes",
        "retries": "5",  # from the provider
        "timeout": "200",  # the service's own wins over the provider's
        "threads": "10",
        "payload": "1000",
        "x": "1",
        "metrics.port": "20888",
        "metrics.protocol": "dubbo",
        "group": "g",
        "version": "1.0",
        "revision": "1.0",
        "interface": "com.acme.Shop",
        "methods": "find,payNow",
        "generic": "false",
        "deprecated": "false",
        "document": "http%3A%2F%2Fdoc%2Fa+b",
        "executes": "3",
        "weight": "50",
        "accesslog": "true",
        "service.filter": "token",
        "find.timeout": "7",
        "find.retries": "0",
        "payNow.retries": "1",
        "payNow.executes": "2",
        "payNow.return": "false",
    }
    assert {key: url.parameters.get(key) for key in expected} == expected
    assert "find.retry" not in url.parameters
    assert {"pid", "timestamp"} <= set(url.parameters)


def test_filters_of_provider_and_service_are_joined(application: Callable[..., Bootstrap]) -> None:
    url = exported_url(application, provider=ProviderConfig(filter="tps"), filter="-echo")
    assert url.get("service.filter") == "tps,-echo"


def test_argument_settings_go_by_index_or_by_type(application: Callable[..., Bootstrap]) -> None:
    by_index = exported_url(
        application, methods=[MethodConfig(name="find", arguments=[ArgumentConfig(index=1, callback=False)])]
    )
    assert by_index.get("find.1.callback") == "false"
    by_type = exported_url(
        application,
        methods=[
            MethodConfig(name="find", arguments=[ArgumentConfig(type="java.lang.String", callback=False)])
        ],
    )
    assert by_type.get("find.0.callback") == "false"
    assert not by_type.get("find.1.callback")
    both = exported_url(
        application,
        methods=[MethodConfig(name="find", arguments=[ArgumentConfig(index=1, type="long", callback=False)])],
    )
    assert both.get("find.1.callback") == "false"


def test_a_type_alone_is_for_every_argument_of_that_type(application: Callable[..., Bootstrap]) -> None:
    class Join:
        def join(self, left: str, times: int, right: str) -> str:
            return (left + right) * times

    app = application()
    settings = MethodConfig(name="join", arguments=[ArgumentConfig(type="str", callback=False)])
    config = app.service(Join(), scope="none", methods=[settings])
    config.export()
    set_for = {key for key in config.urls[0].parameters if key.endswith(".callback")}
    assert set_for == {"join.0.callback", "join.2.callback"}


def test_a_token_is_generated_when_it_is_true(application: Callable[..., Bootstrap]) -> None:
    first, second = (exported_url(application, token=True).get("token") for _ in range(2))
    assert len(first) == 36
    assert first != second
    assert exported_url(application, token="open-sesame").get("token") == "open-sesame"
    assert exported_url(application).get("token") == ""
    assert exported_url(application, token=False).get("token") == ""


def test_a_service_can_do_without_its_providers_token(application: Callable[..., Bootstrap]) -> None:
    for token, expected in ((None, "secret"), ("own", "own"), (False, ""), ("false", "")):
        url = exported_url(application, provider=ProviderConfig(token="secret"), token=token)
        assert url.get("token") == expected


def test_a_service_without_methods_says_any_and_warns(
    application: Callable[..., Bootstrap], caplog: pytest.LogCaptureFixture
) -> None:
    class Empty: ...

    app = application()
    config = app.service(Empty(), scope="none")
    config.export()
    assert config.urls[0].get("methods") == "*"
    assert "No method found in service interface" in caplog.text


def test_a_generic_implementation_says_so(application: Callable[..., Bootstrap]) -> None:
    class Anything(GenericService):
        def invoke(self, method: str, parameter_types: list[str], arguments: list[object]) -> object:
            return [method, arguments]

    app = application()
    config = app.service(ServiceConfig(interface="com.acme.Shop", ref=Anything(), scope="none"))
    config.export()
    url = config.urls[0]
    assert (url.get("generic"), url.get("methods"), url.get("interface")) == ("true", "*", "com.acme.Shop")
    assert url.get("revision") == ""


def test_the_path_is_the_interface_unless_given(application: Callable[..., Bootstrap]) -> None:
    assert exported_url(application).path == "com.acme.Shop"
    assert exported_url(application, path="shop").path == "shop"
    in_context = exported_url(application, protocol=ProtocolConfig(contextpath="v1", **LOOPBACK), path="shop")
    assert in_context.path == "v1/shop"
    by_provider = exported_url(application, provider=ProviderConfig(contextpath="v2"))
    assert by_provider.path == "v2/com.acme.Shop"


def test_a_service_is_known_by_group_context_path_and_version(application: Callable[..., Bootstrap]) -> None:
    app = application(protocol=ProtocolConfig(contextpath="v1", **LOOPBACK))
    config = shop(app, group="g", version="2", scope="none")
    config.export()
    model = app.runtime.provider_models["g/v1/com.acme.Shop:2"]
    assert model.ref is config.ref
    assert set(model.interface.methods) == {"find", "payNow"}


def test_the_providers_group_and_version_are_the_services(application: Callable[..., Bootstrap]) -> None:
    app = application(provider=ProviderConfig(group="g", version="2"))
    config = shop(app, scope="none")
    config.export()
    assert config.urls[0].get("revision") == "2"
    assert app.runtime.provider_models["g/com.acme.Shop:2"].ref is config.ref
    config.unexport()
    assert app.runtime.provider_models == {}


# -- host and port -------------------------------------------------------------------------------------------


def test_the_host_is_found_in_the_documented_order(application: Callable[..., Bootstrap]) -> None:
    protocol = {"protocol": ProtocolConfig(host="10.0.0.2", port=1234)}
    provider = {"provider": ProviderConfig(host="10.0.0.3", port=4321)}
    plain = {"protocol": ProtocolConfig()}
    assert exported_url(application, **protocol, **provider).host == "10.0.0.2"
    assert exported_url(application, **plain, **provider).host == "10.0.0.3"
    assert (
        exported_url(application, **protocol, variables={"DUBBO_IP_TO_BIND": "10.0.0.1"}).host == "10.0.0.1"
    )
    by_name = {"DUBBO_IP_TO_BIND": "10.0.0.1", "DUBBO_DUBBO_IP_TO_BIND": "10.0.0.9"}
    assert exported_url(application, **protocol, variables=by_name).host == "10.0.0.9"
    anyhost = exported_url(application, **plain)
    assert anyhost.get("anyhost") == "true"
    assert anyhost.get("bind.ip") == anyhost.host != "0.0.0.0"


def test_consumers_can_be_told_another_address(application: Callable[..., Bootstrap]) -> None:
    url = exported_url(
        application,
        protocol=ProtocolConfig(host="10.0.0.2", port=1234),
        variables={"DUBBO_IP_TO_REGISTRY": "192.0.2.7", "DUBBO_PORT_TO_REGISTRY": "80"},
    )
    assert url.address == "192.0.2.7:80"
    assert (url.get("bind.ip"), url.get("bind.port")) == ("10.0.0.2", "1234")


def test_the_port_is_found_in_the_documented_order(application: Callable[..., Bootstrap]) -> None:
    host = {"host": "127.0.0.1"}
    provider = {"provider": ProviderConfig(port=4321)}
    assert exported_url(application, protocol=ProtocolConfig(port=1234, **host), **provider).port == 1234
    assert exported_url(application, protocol=ProtocolConfig(**host), **provider).port == 4321
    assert exported_url(application, protocol=ProtocolConfig(**host)).port == 20880
    assert (
        exported_url(
            application, protocol=ProtocolConfig(**host), variables={"DUBBO_PORT_TO_BIND": "99"}
        ).port
        == 99
    )
    assert exported_url(application, protocol=ProtocolConfig(**LOOPBACK)).port >= 20880


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"DUBBO_IP_TO_BIND": "0.0.0.0"}, "DUBBO_IP_TO_BIND=0.0.0.0"),
        ({"DUBBO_IP_TO_REGISTRY": "localhost"}, "DUBBO_IP_TO_REGISTRY=localhost"),
        ({"DUBBO_PORT_TO_BIND": "0"}, "DUBBO_PORT_TO_BIND=0"),
        ({"DUBBO_PORT_TO_REGISTRY": "http"}, "DUBBO_PORT_TO_REGISTRY=http"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(
    application: Callable[..., Bootstrap], variables: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        exported_url(application, variables=variables)


def test_services_of_a_protocol_share_its_free_port(application: Callable[..., Bootstrap]) -> None:
    app = application()
    first, second = shop(app, path="a"), shop(app, path="b")
    app.start()
    assert first.urls[0].port == second.urls[0].port


# -- registries --------------------------------------------------------------------------------------------


def registries_of(*given: RegistryConfig, provider: bool = True) -> list[URL]:
    config = ServiceConfig(
        interface=Shop,
        ref=Shop(),
        application=ApplicationConfig(name="a"),
        registries=list(given),
        runtime=Runtime(),
    )
    config.prepare()
    return load_registries(config, provider=provider, runtime_parameters={"pid": "1"})


def test_a_registry_travels_as_a_registry_url() -> None:
    (url,) = registries_of(RegistryConfig(address="zookeeper://zk1:2181?backup=zk2:2181", group="prod"))
    assert (url.protocol, url.address) == ("registry", "zk1:2181")
    assert url.path == "org.apache.dubbo.registry.RegistryService"
    assert (url.get("registry"), url.get("application"), url.get("group")) == ("zookeeper", "a", "prod")


def test_dubbo_is_a_registrys_default_protocol_and_any_host_its_default_address() -> None:
    (url,) = registries_of(RegistryConfig(address=""))
    assert (url.get("registry"), url.host) == ("dubbo", "0.0.0.0")


def test_switched_off_registries_are_skipped_for_that_purpose() -> None:
    write = RegistryConfig(address="zookeeper://a:1", subscribe=False)
    read = RegistryConfig(address="zookeeper://b:1", register=False)
    none = RegistryConfig(address="N/A")
    assert [u.host for u in registries_of(write, read, none)] == ["a"]
    assert [u.host for u in registries_of(write, read, none, provider=False)] == ["b"]


def test_a_monitor_found_through_the_registry_travels_along(application: Callable[..., Bootstrap]) -> None:
    app = application(registry=RegistryConfig(address="embedded:///nonexistent", dynamic=False))
    config = shop(app, monitor=MonitorConfig(protocol="registry"))
    seen: list[URL] = []

    class Recorder(Exporter):
        async def unexport(self) -> None: ...

    async def export(invoker: Invoker) -> Exporter:
        seen.append(invoker.url)
        return Recorder(invoker)

    app.runtime.export = export  # type: ignore[method-assign]
    config.export()
    registry = next(url for url in seen if url.protocol == "registry")
    exported = URL.parse(registry.get_decoded("export"))
    assert exported.get("dynamic") == "false"
    monitor = URL.parse(exported.get_decoded("monitor"))
    assert (monitor.protocol, monitor.get("protocol")) == ("dubbo", "registry")
    assert "interface=org.apache.dubbo.monitor.MonitorService" in monitor.get_decoded("refer")
