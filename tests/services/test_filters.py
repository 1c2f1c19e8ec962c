"""Filters: what stands between a protocol and an implementation, and what each refuses or notes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.services import (
    URL,
    Bootstrap,
    MethodConfig,
    ProtocolConfig,
    RpcCode,
    RpcException,
    interface,
    points,
)
from headrace.services.filters.base import Filter
from headrace.services.invocation import Invocation, Result


@interface("com.acme.Shop")
class Shop:
    """What the tests call."""

    def echo(self, value: object) -> object:
        return value

    async def sleepy(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "awake"

    def block(self, seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    def unsendable(self) -> object:
        return threading.Lock()


@pytest.fixture
def export(application: Callable[..., Bootstrap]) -> Callable[..., URL]:
    """Export a Shop and give its URL."""

    def make(protocol: dict[str, object] | None = None, **settings: object) -> URL:
        given = ProtocolConfig(host="127.0.0.1", port=-1, **(protocol or {}))  # type: ignore[arg-type]
        app = application("provider", protocol=given)
        config = app.service(Shop(), scope="remote", **settings)
        app.start()
        return config.urls[0]

    return make


@pytest.fixture
def consumer(application: Callable[..., Bootstrap]) -> Bootstrap:
    return application("consumer")


def test_calls_without_the_token_are_refused(export: Callable[..., URL], consumer: Bootstrap) -> None:
    url = export(token="secret")
    right = consumer.reference(Shop, url=f"dubbo://{url.address}?token=secret")
    assert right.echo(1) == 1
    for wrong in ("", "?token=guess"):
        with pytest.raises(
            RpcException, match=r"Invalid token! Forbid invoke remote service interface com.acme.Shop"
        ):
            consumer.reference(Shop, url=f"dubbo://{url.address}{wrong}", retries=0).echo(1)


def test_more_calls_at_once_than_allowed_are_refused(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    async def calls(url: URL) -> list[object]:
        app = application()
        proxy = await app.reference_async(Shop, url=f"dubbo://{url.address}", retries=0, timeout=5000)
        answers = await asyncio.gather(*(proxy.sleepy(0.3) for _ in range(5)), return_exceptions=True)
        assert await proxy.sleepy(0) == "awake"
        return list(answers)

    answers = asyncio.run(calls(export(methods=[MethodConfig(name="sleepy", executes=2)])))
    assert answers.count("awake") == 2
    refused = [str(a) for a in answers if isinstance(a, RpcException)]
    assert len(refused) == 3
    assert 'The service using threads greater than <dubbo:service executes="2" /> limited.' in refused[0]


def test_a_full_pool_refuses_with_dubbos_status(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    async def calls(url: URL) -> list[object]:
        app = application()
        proxy = await app.reference_async(Shop, url=f"dubbo://{url.address}", retries=0, timeout=5000)
        return list(await asyncio.gather(*(proxy.block(0.3) for _ in range(4)), return_exceptions=True))  # type: ignore[arg-type]

    answers = asyncio.run(calls(export(protocol={"threads": 1, "queues": 1})))
    refused = [str(a) for a in answers if isinstance(a, RpcException)]
    assert len(refused) == 2
    assert "threadpool is exhausted ,detail msg:Thread pool is EXHAUSTED!" in refused[0]


def test_calls_beyond_the_rate_are_refused(export: Callable[..., URL], consumer: Bootstrap) -> None:
    url = export(filter="tps", parameters={"tps": "2"})
    proxy = consumer.reference(Shop, url=f"dubbo://{url.address}", retries=0)
    assert [proxy.echo(1), proxy.echo(2)] == [1, 2]
    with pytest.raises(RpcException, match="because exceed max service tps"):
        proxy.echo(3)


def test_a_consumer_can_limit_its_own_calls(
    export: Callable[..., URL], application: Callable[..., Bootstrap]
) -> None:
    async def calls(url: URL) -> list[object]:
        app = application()
        proxy = await app.reference_async(
            Shop, url=f"dubbo://{url.address}", actives=1, timeout=400, retries=0
        )
        return list(await asyncio.gather(*(proxy.sleepy(0.3) for _ in range(3)), return_exceptions=True))

    answers = asyncio.run(calls(export()))
    limited = [a for a in answers if isinstance(a, RpcException) and a.code == RpcCode.LIMIT_EXCEEDED]
    assert answers[0] == "awake"
    assert len(limited) == 1


def test_the_access_log_has_a_line_a_call(
    export: Callable[..., URL], consumer: Bootstrap, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    log = tmp_path / "logs" / "access.log"
    url = export(accesslog=str(log), group="g", version="1")
    consumer.reference(Shop, url=f"dubbo://{url.address}", group="g", version="1").echo("tea")
    eventually(lambda: log.exists() and log.read_text())
    line = log.read_text()
    assert 'g/com.acme.Shop:1 echo(java.lang.Object) ["tea"]' in line
    assert "127.0.0.1:" in line


def test_no_argument_is_too_strange_for_the_access_log(
    export: Callable[..., URL], consumer: Bootstrap, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    log = tmp_path / "access.log"
    url = export(accesslog=str(log))
    proxy = consumer.reference(Shop, url=f"dubbo://{url.address}")
    endless: list[object] = ["half a pair \ud800", {(1, 2): b"xy"}]
    endless.append(endless)
    answer = proxy.echo(endless)
    assert isinstance(answer, list)
    assert answer[2] is answer
    eventually(lambda: log.exists() and log.read_text())
    assert '[["half a pair \\ud800", {[1, 2]: <2 bytes>}, [' in log.read_text()


def test_slow_calls_are_told_to_the_log(
    export: Callable[..., URL],
    consumer: Bootstrap,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[..., None],
) -> None:
    url = export(timeout=10)
    proxy = consumer.reference(Shop, url=f"dubbo://{url.address}", timeout=5000)
    proxy.block(0.05)
    eventually(lambda: "invoke time out. method: block" in caplog.text)


def test_filters_can_be_added_and_removed(export: Callable[..., URL], consumer: Bootstrap) -> None:
    class Shout(Filter):
        async def invoke(self, invocation: Invocation) -> Result:
            result = await self.inner.invoke(invocation)
            return Result(str(result.value).upper())

    points.FILTERS.register("shout", Shout)
    url = export(filter="shout,-exception")
    assert consumer.reference(Shop, url=f"dubbo://{url.address}").echo("tea") == "TEA"


def test_a_deprecated_method_is_told_once(
    export: Callable[..., URL], consumer: Bootstrap, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = consumer.reference(
        Shop, url=f"dubbo://{export().address}", methods=[MethodConfig(name="echo", deprecated=True)]
    )
    proxy.echo(1)
    proxy.echo(2)
    assert caplog.text.count("com.acme.Shop.echo is DEPRECATED!") == 1
