"""Settings: where they come from, which wins, and how a mistake is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.services import (
    ApplicationConfig,
    ArgumentConfig,
    ConfigError,
    ConsumerConfig,
    Environment,
    MethodConfig,
    ProtocolConfig,
    ProviderConfig,
    ReferenceConfig,
    RegistryConfig,
    Runtime,
    ServiceConfig,
)
from headrace.services.config.environment import read_properties
from headrace.services.interface import interface


@interface("com.acme.Shop")
class Shop:
    def find(self, key: str, limit: int) -> list[str]:
        return [key] * limit

    def pay_now(self, amount: float) -> None: ...


# -- sources -------------------------------------------------------------------------------------------------


def test_properties_beat_the_environment_beats_the_file_beats_code(tmp_path: Path) -> None:
    file = tmp_path / "dubbo.properties"
    file.write_text("dubbo.protocol.port=3\ndubbo.protocol.threads=3\ndubbo.protocol.queues=3\n")
    environment = Environment(
        properties={"dubbo.protocol.port": "1"},
        variables={"DUBBO_PROTOCOL_PORT": "2", "DUBBO_PROTOCOL_THREADS": "2"},
        file=file,
    )
    protocol = ProtocolConfig(port=4, threads=4, queues=4, accepts=4)
    protocol.refresh(environment)
    assert (protocol.port, protocol.threads, protocol.queues, protocol.accepts) == (1, 2, 3, 4)


def test_a_nearer_source_beats_a_more_exact_name() -> None:
    environment = Environment(
        properties={"dubbo.registry.timeout": "1"}, variables={"DUBBO_REGISTRIES_EAST_TIMEOUT": "2"}
    )
    registry = RegistryConfig(id="east")
    registry.refresh(environment)
    assert registry.timeout == 1


def test_an_id_makes_a_name_more_exact() -> None:
    environment = Environment(
        properties={"dubbo.registry.timeout": "1", "dubbo.registries.east.timeout": "2"}
    )
    east, west = RegistryConfig(id="east"), RegistryConfig(id="west")
    east.refresh(environment)
    west.refresh(environment)
    assert (east.timeout, west.timeout) == (2, 1)


def test_a_toml_file_is_as_good_as_properties(tmp_path: Path) -> None:
    file = tmp_path / "services.toml"
    file.write_text('[dubbo.application]\nname = "shop"\n[dubbo.registry]\ncheck = false\naddress = "N/A"\n')
    environment = Environment(file=file, variables={})
    application, registry = ApplicationConfig(), RegistryConfig()
    application.refresh(environment)
    registry.refresh(environment)
    assert application.name == "shop"
    assert registry.check is False
    assert registry.is_direct


def test_the_file_can_be_named_by_a_property(tmp_path: Path) -> None:
    file = tmp_path / "x.properties"
    file.write_text("dubbo.application.name: elsewhere\n")
    assert (
        Environment(properties={"dubbo.properties.file": str(file)}).get("dubbo.application.name")
        == "elsewhere"
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.toml", None, "cannot be read"),
        ("bad.toml", "= 1", "not valid TOML"),
        ("b.toml", b"\xff", "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, name: str, content: str | bytes | None, said: str
) -> None:
    file = tmp_path / name
    if isinstance(content, str):
        file.write_text(content)
    elif content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        Environment(file=file)


def test_javas_properties_format_is_read_whole() -> None:
    text = "# note\n! note\na=1\nb : 2\nc 3\nlong = one,\\\n    two\nuni=\\u00e9\\t\\=\nempty\nd\\:e=f\nend=x\\\\\n"
    assert read_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "long": "one,two",
        "uni": "é\t=",
        "empty": "",
        "d:e": "f",
        "end": "x\\",
    }


def test_a_value_of_the_wrong_kind_names_its_key() -> None:
    with pytest.raises(ConfigError, match=r"dubbo\.protocol\.port=many is not a whole number"):
        ProtocolConfig().refresh(Environment(properties={"dubbo.protocol.port": "many"}))
    with pytest.raises(ConfigError, match="neither true nor false"):
        RegistryConfig().refresh(Environment(properties={"dubbo.registry.check": "maybe"}))


def test_method_settings_can_come_from_outside(runtime: Callable[..., Runtime]) -> None:
    config = ServiceConfig(
        interface=Shop,
        ref=Shop(),
        application=ApplicationConfig(name="a"),
        methods=[MethodConfig(name="pay_now", timeout=5)],
        runtime=runtime(
            {"dubbo.com.acme.Shop.payNow.timeout": "9", "dubbo.service.com.acme.Shop.weight": "7"}
        ),
    )
    config.prepare()
    assert config.methods[0].timeout == 9
    assert config.weight == 7


def test_registries_and_protocols_can_come_from_outside_alone(runtime: Callable[..., Runtime]) -> None:
    config = ServiceConfig(
        interface=Shop,
        ref=Shop(),
        runtime=runtime(
            {
                "dubbo.application.name": "a",
                "dubbo.registries.east.address": "zookeeper://east:2181",
                "dubbo.registries.west.address": "zookeeper://west:2181",
                "dubbo.protocols.first.name": "dubbo",
                "dubbo.protocols.second.name": "injvm",
            }
        ),
    )
    config.prepare()
    assert [r.address for r in config.registries] == ["zookeeper://east:2181", "zookeeper://west:2181"]
    assert [p.name for p in config.protocols] == ["dubbo", "injvm"]
    assert config.application is not None
    assert config.application.name == "a"


def test_nearer_settings_win_over_farther_ones(runtime: Callable[..., Runtime]) -> None:
    near, far = RegistryConfig(address="zookeeper://near:1"), RegistryConfig(address="zookeeper://far:1")
    application = ApplicationConfig(name="a", registries=[far])
    from_application = ServiceConfig(interface=Shop, ref=Shop(), application=application, runtime=runtime())
    from_application.prepare()
    assert from_application.registries == [far]
    own = ServiceConfig(
        interface=Shop, ref=Shop(), application=application, registries=[near], runtime=runtime()
    )
    own.prepare()
    assert own.registries == [near]
    from_provider = ServiceConfig(
        interface=Shop,
        ref=Shop(),
        application=application,
        provider=ProviderConfig(registries=[near]),
        runtime=runtime(),
    )
    from_provider.prepare()
    assert from_provider.registries == [near]


# -- mistakes ------------------------------------------------------------------------------------------------


class Half:
    def find(self, key: str, limit: int) -> list[str]:
        return []


class Narrow(Shop):
    def find(self) -> list[str]:  # type: ignore[override]
        return []


APPLICATION = ApplicationConfig(name="shop")
MISTAKES: list[tuple[dict[str, object], str]] = [
    ({"interface": None, "ref": None}, "interface is missing"),
    ({"ref": None}, "ref is missing"),
    ({"ref": Shop}, "give an instance"),
    ({"ref": Half()}, r"Half does not implement it, pay_now\(\) is missing"),
    ({"ref": Narrow()}, "Narrow.find cannot take the interface's 2 arguments"),
    ({"application": ApplicationConfig()}, "application: name is missing"),
    ({"application": ApplicationConfig(name="a b")}, "name=a b has a character that is not allowed"),
    ({"application": ApplicationConfig(name="a", environment="moon")}, "environment=moon is not one of"),
    ({"protocols": [ProtocolConfig(name="pigeon")]}, "name=pigeon names no known protocol: known are dubbo"),
    ({"protocols": [ProtocolConfig(port=70000)]}, "port=70000 is not a number from -1 to 65535"),
    ({"protocols": [ProtocolConfig(dispatcher="sideways")]}, "dispatcher=sideways is not one of all, direct"),
    ({"loadbalance": "dice"}, "loadbalance=dice names no known load balancer"),
    ({"cluster": "swarm"}, "cluster=swarm names no known cluster"),
    ({"filter": "token,-sieve"}, "filter=token,-sieve names no known filter"),
    ({"scope": "galaxy"}, "scope=galaxy is not one of none, local, remote"),
    ({"timeout": -1}, "timeout=-1 is less than 0"),
    ({"timeout": "soon"}, "timeout='soon' is not a whole number"),
    ({"group": "a b"}, "group=a b has a character"),
    ({"path": "x" * 201}, "is longer than 200 characters"),
    ({"methods": [MethodConfig()]}, "method: name is missing"),
    ({"methods": [MethodConfig(name="fly")]}, "the interface com.acme.Shop has no such method"),
    (
        {"methods": [MethodConfig(name="find", arguments=[ArgumentConfig()])]},
        "index and type are both missing",
    ),
    (
        {"methods": [MethodConfig(name="find", arguments=[ArgumentConfig(index=2)])]},
        "index=2 is out of range",
    ),
    (
        {"methods": [MethodConfig(name="find", arguments=[ArgumentConfig(index=0, type="long")])]},
        r"index=0 and type=long do not match, that argument is a java\.lang\.String",
    ),
    ({"registries": [RegistryConfig(address="N/A", session=-5)]}, "session=-5 is less than 0"),
]


@pytest.mark.parametrize(("settings", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_each_mistake_is_told_before_anything_is_exported(
    runtime: Callable[..., Runtime], settings: dict[str, object], said: str
) -> None:
    given = {"interface": Shop, "ref": Shop(), "application": APPLICATION, **settings}
    config = ServiceConfig(runtime=runtime(), **given)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=said):
        config.export()
    assert not config.exported
    assert config.urls == []


def test_all_mistakes_are_told_at_once(runtime: Callable[..., Runtime]) -> None:
    config = ServiceConfig(
        interface=Shop,
        ref=Shop(),
        application=APPLICATION,
        scope="x",
        timeout=-1,
        loadbalance="y",
        runtime=runtime(),
    )
    with pytest.raises(ConfigError) as raised:
        config.export()
    assert len(raised.value.mistakes) == 3


def test_a_reference_is_checked_the_same_way(runtime: Callable[..., Runtime]) -> None:
    with pytest.raises(ConfigError, match="interface is missing"):
        ReferenceConfig(runtime=runtime()).get()
    with pytest.raises(ConfigError, match="interface is only a name"):
        ReferenceConfig(interface="com.acme.Shop", application=APPLICATION, runtime=runtime()).get()
    with pytest.raises(ConfigError, match="consumer: retries=-2"):
        ReferenceConfig(
            interface=Shop, application=APPLICATION, consumer=ConsumerConfig(retries=-2), runtime=runtime()
        ).get()
    with pytest.raises(ConfigError, match="No such any registry"):
        ReferenceConfig(interface=Shop, application=APPLICATION, runtime=runtime()).get()


def test_parameters_that_cannot_travel_are_refused(runtime: Callable[..., Runtime]) -> None:
    class Wide:
        def call(self, *args: str) -> None: ...

    with pytest.raises(ConfigError, match=r"Wide\.call has the parameter 'args', which cannot travel"):
        ServiceConfig(interface=Wide, ref=Wide(), application=APPLICATION, runtime=runtime()).export()


def test_two_methods_of_one_wire_name_are_refused(runtime: Callable[..., Runtime]) -> None:
    class Twice:
        def say_it(self) -> None: ...
        def sayIt(self) -> None: ...

    with pytest.raises(ConfigError, match="two methods that are 'sayIt' on the wire"):
        ServiceConfig(interface=Twice, ref=Twice(), application=APPLICATION, runtime=runtime()).export()
