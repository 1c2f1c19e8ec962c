"""Registries: providers found, followed as they come and go, shared out; both kinds promise the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.services import (
    URL,
    Bootstrap,
    ConfigError,
    ProtocolConfig,
    RegistryConfig,
    RegistryError,
    RpcException,
)
from headrace.services.registry.base import Registry


def test_providers_are_found_and_share_the_load(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    for name in "ab":
        who.provide(registry(), name)
    proxy = application("c", registry=registry()).reference(who.interface)
    assert who.answers(proxy, 100) == {"a", "b"}


def test_a_directory_follows_providers_that_come_and_go(
    who: Any,
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    first = who.provide(registry(), "a")
    proxy = application("c", registry=registry()).reference(who.interface)
    assert who.answers(proxy) == {"a"}
    second = who.provide(registry(), "b")
    eventually(lambda: who.answers(proxy) == {"a", "b"})
    first.stop()
    eventually(lambda: who.answers(proxy) == {"b"})
    second.stop()

    def forbidden() -> bool:
        try:
            proxy.who()
        except RpcException as error:
            return "No provider available from registry" in str(error)
        return False

    eventually(forbidden)
    who.provide(registry(), "c")
    eventually(lambda: not forbidden())
    assert who.answers(proxy) == {"c"}


def test_groups_and_versions_keep_services_apart(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    for group, version in (("g", "1"), ("g", "2"), (None, None)):
        who.provide(registry(), f"{group}-{version}", group=group, version=version)
    consumer = application("c", registry=registry())
    assert who.answers(consumer.reference(who.interface, group="g", version="2")) == {"g-2"}
    assert who.answers(consumer.reference(who.interface)) == {"None-None"}
    assert who.answers(consumer.reference(who.interface, group="g", version="*")) == {"g-1", "g-2"}
    with pytest.raises(RpcException, match=r"No provider available for the service g/com\.acme\.Who:3"):
        consumer.reference(who.interface, group="g", version="3")


def test_a_consumer_may_start_before_its_provider(
    who: Any,
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    proxy = application("c", registry=registry()).reference(who.interface, check=False)
    with pytest.raises(RpcException, match="No provider available"):
        proxy.who()
    who.provide(registry(), "late")

    def answers() -> bool:
        try:
            return proxy.who() == "late"
        except RpcException:
            return False

    eventually(answers)


def test_a_generated_token_reaches_consumers_through_the_registry(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    app = who.provide(registry(), "a", token=True)
    assert application("c", registry=registry()).reference(who.interface).who() == "a"
    direct = application("d").reference(
        who.interface, url=f"dubbo://{app.services[0].urls[0].address}", retries=0
    )
    with pytest.raises(RpcException, match="Invalid token!"):
        direct.who()


def test_a_service_that_does_not_register_is_not_found(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    app = who.provide(registry(), "hidden", register=False)
    consumer = application("c", registry=registry())
    with pytest.raises(RpcException, match="No provider available"):
        consumer.reference(who.interface)
    assert (
        consumer.reference(who.interface, url=f"dubbo://{app.services[0].urls[0].address}").who() == "hidden"
    )


def test_several_registries_each_get_the_service(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig], tmp_path: Path
) -> None:
    other = RegistryConfig(address=f"embedded://{tmp_path}/other", default=True)
    who.provide([registry(), other], "both")
    who.provide(other, "only-other")
    assert who.answers(application("c", registry=registry()).reference(who.interface)) == {"both"}
    assert who.answers(application("d", registry=other).reference(who.interface)) == {"both", "only-other"}
    assert who.answers(application("e", registry=[registry(), other]).reference(who.interface)) == {
        "both",
        "only-other",
    }


def test_only_a_reference_of_that_protocol_takes_it(
    who: Any, application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    who.provide(registry(), "a")
    consumer = application("c", registry=registry())
    assert consumer.reference(who.interface, protocol="dubbo").who() == "a"
    with pytest.raises(RpcException, match="No provider available"):
        consumer.reference(who.interface, protocol="rest")


def test_unexporting_one_service_leaves_the_others(
    who: Any,
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    app = application("two", registry=registry())
    first = app.service(who.named("1"), interface=who.interface, version="1")
    app.service(who.named("2"), interface=who.interface, version="2")
    app.start()
    consumer = application("c", registry=registry())
    one, two = consumer.reference(who.interface, version="1"), consumer.reference(who.interface, version="2")
    first.unexport()

    def gone() -> bool:
        try:
            one.who()
        except RpcException:
            return True
        return False

    eventually(gone)
    assert two.who() == "2"


def test_a_directory_that_cannot_be_used_is_one_sentence(
    who: Any, application: Callable[..., Bootstrap], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    app = application(registry=RegistryConfig(address=f"embedded://{tmp_path}/file"))
    app.service(who.named("a"), interface=who.interface)
    with pytest.raises(
        RegistryError, match=r"the embedded registry cannot use .*file: Not a directory; name a"
    ):
        app.start()


def test_old_news_never_comes_after_new_news(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    """A listener that fails is told again later, but not if it has been told something newer since."""
    app, told = application(), list[list[str]]()

    class Listener:
        async def notify(self, urls: list[URL]) -> None:
            told.append([url.protocol for url in urls])
            if len(told) == 1:
                raise OSError("not now")

    async def look() -> Registry:
        registry = await app.runtime.registry(URL.parse(f"embedded://{tmp_path}?retry.period=1000"))
        await registry.subscribe(URL("consumer", "127.0.0.1", 0, "com.acme.Who"), Listener())
        await registry.register(URL("dubbo", "127.0.0.1", 1, "com.acme.Who"))
        return registry

    registry = app.runtime.run(look())
    eventually(lambda: ["dubbo"] in told)
    eventually(lambda: not registry._failed)
    assert told[-1] == ["dubbo"]


def test_news_that_fails_while_older_news_is_told_again_is_told_again_too(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    app, told = application(), list[str]()
    wanted = URL("consumer", "127.0.0.1", 0, "com.acme.Who")
    news = {name: URL("dubbo", "127.0.0.1", 1, "com.acme.Who", {"news": name}) for name in ("old", "new")}

    async def look() -> None:
        registry = await app.runtime.registry(URL.parse(f"embedded://{tmp_path}?retry.period=10"))

        class Listener:
            async def notify(self, urls: list[URL]) -> None:
                told.append(urls[0].get("news"))
                if told in (["old"], ["old", "old", "new"]):
                    raise OSError("not now")
                if told == ["old", "old"]:
                    await registry.notify(wanted, self, [news["new"]])

        await registry.notify(wanted, Listener(), [news["old"]])

    app.runtime.run(look())
    eventually(lambda: told == ["old", "old", "new", "new"])


PROVIDER = textwrap.dedent(
    """
    import sys
    from headrace.services import Bootstrap, ProtocolConfig, RegistryConfig, interface

    @interface("com.acme.Who")
    class Who:
        def who(self) -> str:
            return sys.argv[2]

    settings = {"group": sys.argv[3], "session": 2000} if len(sys.argv) > 3 else {}
    app = Bootstrap("child", registry=RegistryConfig(address=sys.argv[1], **settings),
                    protocol=ProtocolConfig(host="127.0.0.1", port=-1))
    app.service(Who())
    app.start()
    print("ready", flush=True)
    sys.stdin.read()
    app.stop()
    """
)


class Child:
    """A provider in a process of its own."""

    def __init__(self, registry: RegistryConfig, name: str) -> None:
        arguments = [registry.address or "", name, *([registry.group] if registry.group else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROVIDER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def test_a_killed_provider_disappears_and_a_new_one_takes_over(
    who: Any,
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    children = [Child(registry(), "first")]
    try:
        who.provide(registry(), "standby")
        proxy = application("c", registry=registry()).reference(who.interface)
        eventually(lambda: who.answers(proxy) == {"first", "standby"})
        children[0].kill()
        assert who.answers(proxy) == {
            "standby"
        }  # failover hides the death at once, before the registry knows
        children.append(Child(registry(), "second"))
        eventually(lambda: who.answers(proxy) == {"second", "standby"})
    finally:
        for child in children:
            child.close()


def test_an_unknown_kind_of_registry_names_the_known_ones(
    who: Any, application: Callable[..., Bootstrap]
) -> None:
    app = application("a", registry="carrier://pigeon")
    app.service(who.named("a"), interface=who.interface)
    with pytest.raises(ConfigError, match=r"no registry named 'carrier': known are embedded, .*zookeeper"):
        app.start()


def test_weights_decide_the_shares(
    who: Any, application: Callable[..., Bootstrap], zookeeper_registry: Callable[..., RegistryConfig]
) -> None:
    for name, weight in (("light", 1), ("heavy", 9)):
        app = application(
            name, registry=zookeeper_registry(), protocol=ProtocolConfig(host="127.0.0.1", port=-1)
        )
        app.service(who.named(name), interface=who.interface, weight=weight, warmup=1)
        app.start()
    proxy = application("c", registry=zookeeper_registry()).reference(who.interface, loadbalance="roundrobin")
    proxy.who()
    assert Counter(proxy.who() for _ in range(100)) == {"heavy": 90, "light": 10}
