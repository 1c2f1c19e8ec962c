"""Registries: found, kept fresh, recovered; rules that change a live export; descriptions published."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from headrace.services import (
    URL,
    Bootstrap,
    ConfigError,
    MetadataReportConfig,
    ProtocolConfig,
    ReferenceConfig,
    RegistryConfig,
    RegistryError,
    RpcException,
    ServiceConfig,
    interface,
    points,
)
from headrace.services.config.complete import load_registries
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter
from headrace.services.protocols.dubbo.protocol import DubboProtocol
from headrace.services.protocols.registry import registry_url_of
from headrace.services.registry.base import Registry
from headrace.services.url import decode, encode
from headrace.testing.zookeeper import ZooKeeperServer


@interface("com.acme.Who")
class Who:
    def who(self) -> str: ...  # type: ignore[empty-body]


class Named(Who):
    def __init__(self, name: str) -> None:
        self.name = name

    def who(self) -> str:
        return self.name


@pytest.fixture
def client(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    kazoo = KazooClient(zookeeper.connect_string)
    kazoo.start()
    yield kazoo
    kazoo.stop()
    kazoo.close()


@pytest.fixture(params=["zookeeper", "embedded"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., RegistryConfig]:
    """Both kinds of registry promise the same."""
    if request.param == "zookeeper":
        made: Callable[..., RegistryConfig] = request.getfixturevalue("zookeeper_registry")
        return made
    return lambda **settings: RegistryConfig(address=f"embedded://{tmp_path}/registry", **settings)


def provide(
    application: Callable[..., Bootstrap], registry: object, name: str, **settings: object
) -> Bootstrap:
    app = application(name, registry=registry)
    app.service(Named(name), interface=Who, **settings)
    return app.start()


def whos(proxy: Who, count: int = 40) -> set[str]:
    """Who answers; a call that finds nobody is one of the answers."""

    def ask() -> str:
        try:
            return proxy.who()
        except RpcException:
            return "nobody"

    return {ask() for _ in range(count)}


# -- both registries -----------------------------------------------------------------------------------------


def test_providers_are_found_and_share_the_load(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    for name in "ab":
        provide(application, registry(), name)
    proxy = application("c", registry=registry()).reference(Who)
    assert whos(proxy, 100) == {"a", "b"}


def test_a_directory_follows_providers_that_come_and_go(
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    first = provide(application, registry(), "a")
    proxy = application("c", registry=registry()).reference(Who)
    assert whos(proxy) == {"a"}
    second = provide(application, registry(), "b")
    eventually(lambda: whos(proxy) == {"a", "b"})
    first.stop()
    eventually(lambda: whos(proxy) == {"b"})
    second.stop()

    def forbidden() -> bool:
        try:
            proxy.who()
        except RpcException as error:
            return "No provider available from registry" in str(error)
        return False

    eventually(forbidden)
    provide(application, registry(), "c")
    eventually(lambda: not forbidden())
    assert whos(proxy) == {"c"}


def test_groups_and_versions_keep_services_apart(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    for group, version in (("g", "1"), ("g", "2"), (None, None)):
        provide(application, registry(), f"{group}-{version}", group=group, version=version)
    consumer = application("c", registry=registry())
    assert whos(consumer.reference(Who, group="g", version="2")) == {"g-2"}
    assert whos(consumer.reference(Who)) == {"None-None"}
    assert whos(consumer.reference(Who, group="g", version="*")) == {"g-1", "g-2"}
    with pytest.raises(RpcException, match=r"No provider available for the service g/com\.acme\.Who:3"):
        consumer.reference(Who, group="g", version="3")


def test_a_consumer_may_start_before_its_provider(
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    proxy = application("c", registry=registry()).reference(Who, check=False)
    with pytest.raises(RpcException, match="No provider available"):
        proxy.who()
    provide(application, registry(), "late")

    def answers() -> bool:
        try:
            return proxy.who() == "late"
        except RpcException:
            return False

    eventually(answers)


def test_a_generated_token_reaches_consumers_through_the_registry(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    app = provide(application, registry(), "a", token=True)
    assert application("c", registry=registry()).reference(Who).who() == "a"
    direct = application("d").reference(Who, url=f"dubbo://{app.services[0].urls[0].address}", retries=0)
    with pytest.raises(RpcException, match="Invalid token!"):
        direct.who()


def test_a_service_that_does_not_register_is_not_found(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    app = provide(application, registry(), "hidden", register=False)
    consumer = application("c", registry=registry())
    with pytest.raises(RpcException, match="No provider available"):
        consumer.reference(Who)
    assert consumer.reference(Who, url=f"dubbo://{app.services[0].urls[0].address}").who() == "hidden"


def test_several_registries_each_get_the_service(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig], tmp_path: Path
) -> None:
    other = RegistryConfig(address=f"embedded://{tmp_path}/other", default=True)
    provide(application, [registry(), other], "both")
    provide(application, other, "only-other")
    assert whos(application("c", registry=registry()).reference(Who)) == {"both"}
    assert whos(application("d", registry=other).reference(Who)) == {"both", "only-other"}
    assert whos(application("e", registry=[registry(), other]).reference(Who)) == {"both", "only-other"}


def test_only_a_reference_of_that_protocol_takes_it(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    provide(application, registry(), "a")
    consumer = application("c", registry=registry())
    assert consumer.reference(Who, protocol="dubbo").who() == "a"
    with pytest.raises(RpcException, match="No provider available"):
        consumer.reference(Who, protocol="rest")


def test_unexporting_one_service_leaves_the_others(
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    app = application("two", registry=registry())
    first = app.service(Named("1"), interface=Who, version="1")
    app.service(Named("2"), interface=Who, version="2")
    app.start()
    consumer = application("c", registry=registry())
    one, two = consumer.reference(Who, version="1"), consumer.reference(Who, version="2")
    first.unexport()

    def gone() -> bool:
        try:
            one.who()
        except RpcException:
            return True
        return False

    eventually(gone)
    assert two.who() == "2"


# -- rules ---------------------------------------------------------------------------------------------------


def write_rule(
    application: Callable[..., Bootstrap], registry: RegistryConfig, rule: str
) -> Callable[[], None]:
    """Put a rule into the registry, as an administrator would; returns how to take it back."""
    app = application("administrator", registry=registry)
    config = ServiceConfig(interface=Who, ref=Named("x"), runtime=app.runtime)
    config.prepare()
    (url,) = load_registries(config, provider=True, runtime_parameters={})
    runtime, where = app.runtime, registry_url_of(url)

    async def register() -> None:
        await (await runtime.registry(where)).register(URL.parse(rule))

    async def unregister() -> None:
        await (await runtime.registry(where)).unregister(URL.parse(rule))

    runtime.run(register())
    return lambda: runtime.run(unregister())


def test_an_override_rule_changes_a_live_export_and_back(
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    app = provide(application, registry(), "a", weight=10)
    proxy = application("c", registry=registry()).reference(Who, retries=0)
    around = application("d").reference(Who, url=f"dubbo://{app.services[0].urls[0].address}", retries=0)
    assert _calls(around)
    take_back = write_rule(
        application,
        registry(),
        "override://0.0.0.0/com.acme.Who?category=configurators&dynamic=false&side=provider&token=changed",
    )
    eventually(lambda: not _calls(around))  # the export wants a token now …
    eventually(lambda: _calls(proxy))  # … which consumers learn through the registry
    take_back()
    eventually(lambda: _calls(around))


def test_a_directory_that_cannot_be_used_is_one_sentence(
    application: Callable[..., Bootstrap], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    app = application(registry=RegistryConfig(address=f"embedded://{tmp_path}/file"))
    app.service(Named("a"), interface=Who)
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


def test_a_provider_whose_numbers_are_none_harms_only_itself(
    application: Callable[..., Bootstrap], registry: Callable[..., RegistryConfig]
) -> None:
    provide(application, registry(), "a")
    write_rule(application, registry(), "dubbo://127.0.0.1:1/com.acme.Who?weight=heavy&dynamic=false")
    assert whos(application("c", registry=registry()).reference(Who, retries=0)) == {"a"}


def test_a_rule_that_could_not_be_applied_is_tried_again(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    attempts: list[str] = []

    class Reluctant(DubboProtocol):
        async def export(self, invoker: Invoker) -> Exporter:
            if invoker.url.get("weight") == "7":
                attempts.append("7")
                if len(attempts) == 1:
                    raise OSError("not now")
            return await super().export(invoker)

    points.PROTOCOLS.register("reluctant", Reluctant)

    def registry() -> RegistryConfig:
        return RegistryConfig(address=f"embedded://{tmp_path}", parameters={"retry.period": "100"})

    app = application(
        "p", registry=registry(), protocol=ProtocolConfig(name="reluctant", host="127.0.0.1", port=-1)
    )
    app.service(Named("a"), interface=Who)
    app.start()
    write_rule(
        application,
        registry(),
        "override://0.0.0.0/com.acme.Who?category=configurators&dynamic=false&weight=7",
    )
    eventually(lambda: len(attempts) == 2)


def _calls(proxy: Who) -> bool:
    try:
        return proxy.who() == "a"
    except RpcException:
        return False


def test_a_rule_can_disable_one_provider(
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    first = provide(application, registry(), "a")
    provide(application, registry(), "b")
    proxy = application("c", registry=registry()).reference(Who)
    address = first.services[0].urls[0].address
    take_back = write_rule(
        application,
        registry(),
        f"override://{address}/com.acme.Who?category=configurators&dynamic=false&disabled=true",
    )
    eventually(lambda: whos(proxy) == {"b"})
    take_back()
    eventually(lambda: whos(proxy) == {"a", "b"})


def test_a_route_sends_consumers_to_some_providers_only(
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    first = provide(application, registry(), "a")
    provide(application, registry(), "b")
    proxy = application("c", registry=registry()).reference(Who)
    rule = encode(f"method = who => port = {first.services[0].urls[0].port}")
    take_back = write_rule(
        application,
        registry(),
        f"condition://0.0.0.0/com.acme.Who?category=routers&dynamic=false&rule={rule}",
    )
    eventually(lambda: whos(proxy) == {"a"})
    take_back()
    eventually(lambda: whos(proxy) == {"a", "b"})


# -- a provider that dies ------------------------------------------------------------------------------------

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
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> None:
    children = [Child(registry(), "first")]
    try:
        provide(application, registry(), "standby")
        proxy = application("c", registry=registry()).reference(Who)
        eventually(lambda: whos(proxy) == {"first", "standby"})
        children[0].kill()
        assert whos(proxy) == {"standby"}  # failover hides the death at once, before the registry knows
        children.append(Child(registry(), "second"))
        eventually(lambda: whos(proxy) == {"second", "standby"})
    finally:
        for child in children:
            child.close()


# -- ZooKeeper only ------------------------------------------------------------------------------------------


def providers(client: KazooClient, registry: RegistryConfig) -> list[str]:
    path = f"/{registry.group}/com.acme.Who/providers"
    return [decode(name) for name in client.get_children(path)] if client.exists(path) else []


def test_nodes_lie_where_dubbo_puts_them(
    application: Callable[..., Bootstrap],
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
) -> None:
    registry = zookeeper_registry()
    app = provide(application, registry, "a", token="t")
    consumer = application("c", registry=zookeeper_registry())
    consumer.reference(Who)
    root = f"/{registry.group}/com.acme.Who"
    assert set(client.get_children(root)) == {"providers", "consumers", "configurators", "routers"}
    (node,) = client.get_children(f"{root}/providers")
    assert client.get(f"{root}/providers/{node}")[1].ephemeralOwner != 0
    url = URL.parse(decode(node))
    assert url.address == app.services[0].urls[0].address
    assert (url.get("interface"), url.get("dynamic"), url.get("token")) == ("com.acme.Who", "true", "t")
    assert not {"bind.ip", "bind.port", "monitor"} & set(url.parameters)
    (consumer_node,) = client.get_children(f"{root}/consumers")
    assert decode(consumer_node).startswith("consumer://")
    consumer.stop()
    assert client.get_children(f"{root}/consumers") == []
    app.stop()
    assert client.get_children(f"{root}/providers") == []


def test_a_static_registration_outlives_its_session(
    application: Callable[..., Bootstrap],
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
) -> None:
    registry = zookeeper_registry(dynamic=False)
    provide(application, registry, "a")
    root = f"/{registry.group}/com.acme.Who/providers"
    (node,) = client.get_children(root)
    assert client.get(f"{root}/{node}")[1].ephemeralOwner == 0


def test_a_simplified_registry_is_shown_less(
    application: Callable[..., Bootstrap],
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
) -> None:
    registry = zookeeper_registry(simplified=True, extra_keys="owner")
    app = application("a", registry=registry)
    app.service(Named("a"), interface=Who, owner="anna", executes=9, timeout=700)
    app.start()
    url = URL.parse(providers(client, registry)[0])
    assert url.get("owner") == "anna"
    assert url.get("timeout") == "700"
    assert not {"executes", "methods", "side", "pid"} & set(url.parameters)


def test_a_lost_session_is_registered_again(
    application: Callable[..., Bootstrap],
    zookeeper_registry: Callable[..., RegistryConfig],
    client: KazooClient,
    zookeeper: ZooKeeperServer,
    eventually: Callable[..., None],
) -> None:
    registry = zookeeper_registry(parameters={"retry.period": "200"})
    app = provide(application, registry, "a")
    consumer = application("c", registry=zookeeper_registry(parameters={"retry.period": "200"}))
    proxy = consumer.reference(Who)
    before = providers(client, registry)
    for each in (app, consumer):
        expire(each, zookeeper)
    eventually(
        lambda: {owner(client, registry, node) for node in providers(client, registry)} == {session(app)}
    )
    assert providers(client, registry) == before
    eventually(lambda: _calls(proxy))
    provide(application, zookeeper_registry(), "b")
    eventually(lambda: whos(proxy) == {"a", "b"})  # its watch works again too


def expire(app: Bootstrap, server: ZooKeeperServer) -> None:
    """End a session as the ensemble would: a second client takes it over and closes it."""
    (registry,) = app.runtime._registries.values()
    kazoo = registry._zk._client  # type: ignore[attr-defined]
    thief = KazooClient(server.connect_string, client_id=kazoo.client_id)
    thief.start()
    thief.stop()
    thief.close()


def session(app: Bootstrap) -> int:
    (registry,) = app.runtime._registries.values()
    return registry._zk.session_id or 0  # type: ignore[attr-defined, no-any-return]


def owner(client: KazooClient, registry: RegistryConfig, node: str) -> int:
    path = f"/{registry.group}/com.acme.Who/providers/{encode(node)}"
    found = client.exists(path)
    return found.ephemeralOwner if found else 0


def test_who_wants_to_know_of_everything_goes_on_hearing_it_after_a_lost_session(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        watcher, other = application("watcher"), application("other")
        told: dict[str, set[int]] = {}

        class Listener:
            async def notify(self, urls: list[URL]) -> None:
                told[urls[0].interface] = {url.port for url in urls}

        async def registry(app: Bootstrap) -> Registry:
            return await app.runtime.registry(URL.parse(f"zookeeper://{server.connect_string}?session=2000"))

        async def watch() -> None:
            everything = {"interface": "*", "group": "*", "version": "*", "category": "providers"}
            await (await registry(watcher)).subscribe(
                URL("consumer", "127.0.0.1", 0, "*", everything), Listener()
            )

        async def register(port: int, name: str) -> None:
            await (await registry(other)).register(URL("dubbo", "127.0.0.1", port, name))

        watcher.runtime.run(watch())
        other.runtime.run(register(1, "com.acme.A"))
        eventually(lambda: told.get("com.acme.A") == {1})
        first = session(watcher)
        expire(watcher, server)
        eventually(lambda: session(watcher) not in (0, first))
        other.runtime.run(register(2, "com.acme.A"))
        other.runtime.run(register(3, "com.acme.B"))
        eventually(lambda: told == {"com.acme.A": {1, 2}, "com.acme.B": {3}})


def test_an_ensemble_that_is_away_does_not_stop_calls(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        registry = RegistryConfig(
            address=f"zookeeper://{server.connect_string}", session=2000, parameters={"retry.period": "200"}
        )
        provide(application, registry, "a")
        proxy = application("c", registry=registry).reference(Who)
        server.kill()
        assert proxy.who() == "a"
        late = application(
            "late", registry=RegistryConfig(address=registry.address, check=False, timeout=100)
        )
        late.service(Named("late"), interface=Who)
        late.start()  # registers as soon as it can
        server.start()
        eventually(lambda: whos(proxy) == {"a", "late"}, 40)


@pytest.mark.parametrize(
    ("leave", "come_back"),
    [
        (ZooKeeperServer.kill, ZooKeeperServer.start),
        (ZooKeeperServer.pause, ZooKeeperServer.resume),
    ],
)
def test_a_reference_let_go_while_the_ensemble_is_away_does_not_come_back(
    application: Callable[..., Bootstrap],
    tmp_path: Path,
    eventually: Callable[..., None],
    leave: Callable[[ZooKeeperServer], None],
    come_back: Callable[[ZooKeeperServer], None],
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        registry = RegistryConfig(address=f"zookeeper://{server.connect_string}", session=2000)
        provide(application, registry, "a")
        consumer = application("c", registry=registry)
        gone, kept = (
            ReferenceConfig(interface=Who, runtime=consumer.runtime, parameters={"mark": mark})
            for mark in ("gone", "kept")
        )
        assert gone.get().who() == kept.get().who() == "a"
        leave(server)
        gone.destroy()
        come_back(server)
        eventually(lambda: marks_in(server) == {"kept"}, 40)


def marks_in(server: ZooKeeperServer) -> set[str]:
    """The `mark` of each consumer that the ensemble has."""
    kazoo = KazooClient(server.connect_string)
    kazoo.start()
    try:
        nodes = kazoo.get_children("/dubbo/com.acme.Who/consumers")
        return {URL.parse(decode(node)).get("mark") for node in nodes}
    finally:
        kazoo.stop()
        kazoo.close()


def test_calls_go_on_while_everybody_registers_again(
    application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        registry = RegistryConfig(address=f"zookeeper://{server.connect_string}", session=2000)
        app = provide(application, registry, "a")
        consumer = application("c", registry=registry)
        proxy = consumer.reference(Who)
        first = session(consumer)
        expire(consumer, server)  # the consumer comes back first, and the provider's node …
        expire(app, server)  # … is away for a moment
        failures = []

        def call() -> bool:
            try:
                proxy.who()
            except RpcException as error:
                failures.append(error)
            return session(app) != 0 and session(consumer) not in (0, first)

        eventually(call)
        eventually(lambda: server_has_provider(server))
        assert failures == []
        app.stop()
        eventually(lambda: not _calls(proxy))  # in the end an empty registry is believed


def server_has_provider(server: ZooKeeperServer) -> bool:
    kazoo = KazooClient(server.connect_string)
    kazoo.start()
    try:
        return bool(providers(kazoo, RegistryConfig(group="dubbo")))
    finally:
        kazoo.stop()
        kazoo.close()


def test_an_ensemble_that_does_not_answer_is_one_sentence(application: Callable[..., Bootstrap]) -> None:
    registry = RegistryConfig(address="zookeeper://127.0.0.1:1", timeout=200)
    app = application("a", registry=registry)
    config = app.service(Named("a"), interface=Who)
    with pytest.raises(
        RegistryError, match=r"the ZooKeeper registry at 127\.0\.0\.1:1 does not answer within 0\.2 s"
    ):
        app.start()
    assert not config.exported


def test_an_unknown_kind_of_registry_names_the_known_ones(application: Callable[..., Bootstrap]) -> None:
    app = application("a", registry="carrier://pigeon")
    app.service(Named("a"), interface=Who)
    with pytest.raises(ConfigError, match="no registry named 'carrier': known are embedded, zookeeper"):
        app.start()


def test_metadata_is_published(
    application: Callable[..., Bootstrap], zookeeper: ZooKeeperServer, client: KazooClient
) -> None:
    group = f"meta{os.getpid()}"
    report = MetadataReportConfig(address=f"zookeeper://{zookeeper.connect_string}", group=group)
    app = application("shop", metadata_report=report)
    config = app.service(Named("a"), interface=Who, version="1", group="g")
    app.start()
    path = f"/{group}/metadata/com.acme.Who/1/g/provider/shop"
    described = json.loads(client.get(path)[0])
    assert described["canonicalName"] == "com.acme.Who"
    assert described["methods"] == [{"name": "who", "parameterTypes": [], "returnType": "java.lang.String"}]
    assert described["parameters"]["application"] == "shop"
    assert "pid" not in described["parameters"]
    consumer = application("buyer", metadata_report=report)
    consumer.reference(Who, url=f"dubbo://{config.urls[0].address}", version="1", group="g")
    stored = json.loads(client.get(f"/{group}/metadata/com.acme.Who/1/g/consumer/buyer")[0])
    assert stored["side"] == "consumer"


def test_weights_decide_the_shares(
    application: Callable[..., Bootstrap], zookeeper_registry: Callable[..., RegistryConfig]
) -> None:
    for name, weight in (("light", 1), ("heavy", 9)):
        app = application(
            name, registry=zookeeper_registry(), protocol=ProtocolConfig(host="127.0.0.1", port=-1)
        )
        app.service(Named(name), interface=Who, weight=weight, warmup=1)
        app.start()
    proxy = application("c", registry=zookeeper_registry()).reference(Who, loadbalance="roundrobin")
    proxy.who()
    assert Counter(proxy.who() for _ in range(100)) == {"heavy": 90, "light": 10}
