"""Exporting: once, later or not at all; by every scope; over several protocols; all at once when an application starts."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import pytest

from headrace.services import (
    Bootstrap,
    ConfigError,
    ProtocolConfig,
    ProviderConfig,
    RegistryConfig,
    RpcException,
    ServiceConfig,
    ServicesError,
    interface,
    service,
)
from headrace.services.url import URL

LOOPBACK = {"host": "127.0.0.1", "port": -1}


@interface("com.acme.Shop")
class Shop:
    def find(self, key: str, limit: int) -> list[str]:
        return [key] * limit

    def pay_now(self, amount: float) -> None: ...


def shop(app: Bootstrap, **settings: object) -> ServiceConfig[Shop]:
    return app.service(Shop(), interface=Shop, **settings)


# -- once, later, never --------------------------------------------------------------------------------------


def test_a_service_is_exported_once_however_often_it_is_asked(application: Callable[..., Bootstrap]) -> None:
    app = application()
    config = shop(app)
    config.export()
    config.export()
    assert config.exported
    assert len(config.urls) == 1


def test_export_false_exports_nothing(application: Callable[..., Bootstrap]) -> None:
    app = application()
    config = shop(app, export_=False)
    config.export()
    assert not config.exported
    assert config.urls == []
    by_provider = shop(application(provider=ProviderConfig(export_=False)))
    by_provider.export()
    assert not by_provider.exported


def test_a_withdrawn_service_is_not_exported_again(application: Callable[..., Bootstrap]) -> None:
    app = application()
    config = shop(app)
    config.export()
    config.unexport()
    config.unexport()
    with pytest.raises(ServicesError, match=r"The service com\.acme\.Shop has already unexported!"):
        config.export()


async def test_a_service_withdrawn_while_it_goes_out_is_withdrawn_whole(
    application: Callable[..., Bootstrap],
) -> None:
    app = application(
        protocol=[ProtocolConfig(name="dubbo", **LOOPBACK), ProtocolConfig(name="rest", **LOOPBACK)]
    )
    config = shop(app)
    await asyncio.gather(config.export_async(), config.export_async(), config.unexport_async())
    assert [url.protocol for url in config.urls] == ["dubbo", "rest"]
    assert config.unexported
    assert app.runtime.provider_models == {}
    for url in config.urls:
        proxy = await application().reference_async(Shop, url=url.identity, retries=0)
        with pytest.raises(RpcException, match=r"Not found exported service|there is no service"):
            await proxy.find("a", 1)


def test_withdrawing_what_was_never_exported_changes_nothing(application: Callable[..., Bootstrap]) -> None:
    config = shop(application())
    config.unexport()
    config.export()
    assert config.exported


def test_a_delayed_export_comes_later(
    application: Callable[..., Bootstrap], eventually: Callable[..., None]
) -> None:
    app = application(provider=ProviderConfig(delay=150))
    config = shop(app)
    config.export()
    config.export()
    assert not config.exported
    eventually(lambda: config.urls)
    assert len(config.urls) == 1


def test_a_delayed_export_can_be_taken_back(
    application: Callable[..., Bootstrap], eventually: Callable[..., None]
) -> None:
    app = application()
    cancelled, awaited = shop(app, delay=50, path="a"), shop(app, delay=100, path="b")
    cancelled.export()
    awaited.export()
    cancelled.unexport()
    eventually(lambda: awaited.urls)
    assert not cancelled.exported


def test_a_delayed_export_that_fails_is_logged(
    application: Callable[..., Bootstrap], eventually: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        app = application(protocol=ProtocolConfig(host="127.0.0.1", port=taken.getsockname()[1]))
        config = shop(app, delay=10)
        config.export()
        eventually(lambda: "The delayed export of com.acme.Shop failed" in caplog.text)
        assert not config.exported
    config.export()  # and can be tried again, later again
    eventually(lambda: config.urls)


async def test_a_delayed_export_does_not_come_after_the_end(application: Callable[..., Bootstrap]) -> None:
    app, clock = application(), application()
    stopped, awaited = shop(app, delay=50), shop(clock, delay=150)
    async with clock:
        async with app:
            pass
        async with asyncio.timeout(20):
            while not awaited.urls:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert not stopped.exported


def test_an_export_that_fails_can_be_tried_again(application: Callable[..., Bootstrap]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = shop(application(protocol=ProtocolConfig(host="127.0.0.1", port=port)))
        with pytest.raises(ServicesError, match=f"{port}.*choose another dubbo.protocol.port"):
            config.export()
        assert not config.exported
    config.export()
    assert config.exported
    assert len(config.urls) == 1


def test_an_export_that_fails_half_way_leaves_nothing_behind(application: Callable[..., Bootstrap]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        app = application(
            protocol=[
                ProtocolConfig(host="127.0.0.1", port=-1),
                ProtocolConfig(name="rest", host="127.0.0.1", port=port),
            ]
        )
        config = shop(app)
        with pytest.raises(ServicesError, match="choose another"):
            config.export()
        assert config.urls == []
        assert not app.runtime.provider_models
    config.export()
    assert [url.protocol for url in config.urls] == ["dubbo", "rest"]


def test_a_start_that_fails_takes_back_what_is_out(application: Callable[..., Bootstrap]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        app = application()
        first = shop(app, path="first")
        second = ProtocolConfig(name="rest", host="127.0.0.1", port=taken.getsockname()[1])
        shop(app, path="second", protocols=[second])
        with pytest.raises(ServicesError, match="choose another"), app:
            pass
    assert first.urls
    assert not listens(first.urls[0])


def test_what_was_stopped_does_not_start_again(application: Callable[..., Bootstrap]) -> None:
    app = application()
    shop(app)
    with app:
        pass
    with pytest.raises(ServicesError, match=r"The service com\.acme\.Shop has already unexported!"):
        app.start()


# -- scopes --------------------------------------------------------------------------------------------------


def listens(url: URL) -> bool:
    try:
        socket.create_connection((url.host or "", url.port), timeout=1).close()
    except OSError:
        return False
    return True


def test_scope_none_exports_nothing_but_the_url_is_known(application: Callable[..., Bootstrap]) -> None:
    app = application()
    config = shop(app, scope="none")
    app.start()
    assert config.urls[0].path == "com.acme.Shop"
    assert not listens(config.urls[0])
    with pytest.raises(ConfigError):
        app.reference(Shop)


def test_scope_local_is_for_this_process_only(application: Callable[..., Bootstrap]) -> None:
    app = application()
    config = shop(app, scope="local")
    app.start()
    assert not listens(config.urls[0])
    assert app.reference(Shop).find("a", 2) == ["a", "a"]


def test_scope_remote_is_for_the_network_only(application: Callable[..., Bootstrap]) -> None:
    app = application()
    config = shop(app, scope="remote")
    app.start()
    assert listens(config.urls[0])
    with pytest.raises(ConfigError):  # not found in the process, and there is no registry
        app.reference(Shop)
    assert app.reference(Shop, url=f"dubbo://{config.urls[0].address}").find("a", 1) == ["a"]


def test_without_a_scope_a_service_is_both(application: Callable[..., Bootstrap]) -> None:
    app = application()
    config = shop(app)
    app.start()
    assert listens(config.urls[0])
    assert app.reference(Shop).find("a", 1) == ["a"]


def test_a_reference_can_refuse_or_demand_the_process(application: Callable[..., Bootstrap]) -> None:
    app = application()
    shop(app)
    app.start()
    with pytest.raises(ConfigError, match="No such any registry"):
        app.reference(Shop, injvm=False)
    other = application()
    with pytest.raises(RpcException, match="No provider available"):
        other.reference(Shop, injvm=True)


def test_an_injvm_protocol_is_never_registered(application: Callable[..., Bootstrap]) -> None:
    registry = RegistryConfig(address="zookeeper://127.0.0.1:1")  # would fail if it were asked
    app = application(protocol=ProtocolConfig(name="injvm"), registry=registry)
    shop(app)
    app.start()
    assert app.reference(Shop).find("a", 1) == ["a"]


# -- several protocols -----------------------------------------------------------------------------------------


def test_one_service_goes_out_over_several_protocols(application: Callable[..., Bootstrap]) -> None:
    app = application(
        protocol=[ProtocolConfig(name="dubbo", **LOOPBACK), ProtocolConfig(name="rest", **LOOPBACK)]
    )
    config = shop(app, scope="remote")
    app.start()
    assert [url.protocol for url in config.urls] == ["dubbo", "rest"]
    for url in config.urls:
        assert app.reference(Shop, url=url.identity).find("a", 1) == ["a"]


# -- starting ------------------------------------------------------------------------------------------------


@service(Shop, version="9", export=True)
class MarkedShop(Shop):
    """An implementation that says itself what it is."""


def test_marked_classes_are_exported_with_one_call(
    application: Callable[..., Bootstrap], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    app = application()
    config = app.service(MarkedShop)
    with app:
        assert config.urls[0].get("version") == "9"
        assert app.reference(Shop, version="9").find("x", 1) == ["x"]
    assert "Export dubbo service com.acme.Shop to url dubbo://" in caplog.text


def test_nothing_is_exported_if_one_of_several_services_is_wrong(
    application: Callable[..., Bootstrap],
) -> None:
    app = application()
    right, wrong = shop(app, path="a"), shop(app, path="b", timeout=-1)
    with pytest.raises(ConfigError):
        app.start()
    assert not right.exported
    assert not wrong.exported


async def test_an_application_can_lend_its_own_loop(application: Callable[..., Bootstrap]) -> None:
    class Slow:
        async def loop_id(self) -> int:
            await asyncio.sleep(0)
            return id(asyncio.get_running_loop())

    app = application()
    app.service(Slow())
    async with app:
        proxy = await app.reference_async(Slow)
        assert await proxy.loop_id() == id(asyncio.get_running_loop())
        with pytest.raises(ServicesError, match="use the method whose name ends in _async"):
            app.services[0].export()
