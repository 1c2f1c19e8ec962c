"""The URL model: reading, printing and looking up as Dubbo does."""

from __future__ import annotations

import pytest

from headrace.services import ConfigError
from headrace.services.addresses import is_match, parse_address, parse_addresses
from headrace.services.url import URL, build_key, decode, encode

FULL = "dubbo://alice:secret@10.0.0.1:20880/ctx/com.acme.Shop?group=g&interface=com.acme.Shop&version=1.0"


def test_every_part_of_a_url_is_read() -> None:
    url = URL.parse(FULL)
    assert (url.protocol, url.username, url.password) == ("dubbo", "alice", "secret")
    assert (url.host, url.port, url.path) == ("10.0.0.1", 20880, "ctx/com.acme.Shop")
    assert url.get("group") == "g"
    assert url.full == FULL


def test_printing_hides_the_password() -> None:
    assert "secret" not in str(URL.parse(FULL))


def test_parameters_are_printed_in_order_so_that_equal_urls_are_equal_text() -> None:
    assert URL.parse("a://h?b=2&a=1").full == URL.parse("a://h?a=1&b=2").full
    assert URL.parse("a://h?b=2&a=1") == URL.parse("a://h?a=1&b=2")


def test_a_bare_parameter_is_its_own_value() -> None:
    assert URL.parse("a://h?flag").get("flag") == "flag"


def test_ipv6_hosts_keep_their_colons() -> None:
    url = URL.parse("dubbo://[fe80::1]:20880/p")
    assert (url.host, url.port) == ("fe80::1", 20880)
    assert url.address == "[fe80::1]:20880"


@pytest.mark.parametrize("text", ["", "://host", "dubbo://h:99999", "dubbo://h:port"])
def test_a_url_that_makes_no_sense_is_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        URL.parse(text)
    assert "\n" not in str(raised.value)


def test_a_method_setting_wins_over_the_services() -> None:
    url = URL.parse("dubbo://h?timeout=1000&pay.timeout=50")
    assert url.method_int("pay", "timeout", 1) == 50
    assert url.method_int("list", "timeout", 1) == 1000
    assert url.method_int("list", "retries", 2) == 2


def test_a_default_setting_comes_last() -> None:
    assert URL.parse("dubbo://h?default.timeout=7").get_int("timeout", 1) == 7
    assert URL.parse("dubbo://h?default.timeout=7&timeout=9").get_int("timeout", 1) == 9


def test_a_number_that_is_none_names_the_setting() -> None:
    with pytest.raises(ConfigError, match="timeout=soon"):
        URL.parse("dubbo://h?timeout=soon").get_int("timeout", 1)


def test_the_service_key_is_group_interface_version() -> None:
    assert URL.parse(FULL).service_key == "g/com.acme.Shop:1.0"
    assert URL.parse(FULL).path_key == "g/ctx/com.acme.Shop:1.0"
    assert build_key("a.B", None, None) == "a.B"


def test_encoding_is_javas() -> None:
    assert encode("a b~*-_.é/:") == "a+b%7E*-_.%C3%A9%2F%3A"
    assert decode(encode(FULL)) == FULL


def test_a_url_inside_a_parameter_survives() -> None:
    registry = URL.parse("registry://h:9090/x").add_encoded("export", FULL)
    assert URL.parse(registry.full).get_decoded("export") == FULL


def test_urls_never_change() -> None:
    url = URL.parse("a://h?x=1")
    assert url.add({"y": True, "z": None}).get("y") == "true"
    assert url.remove("x").parameters == {}
    assert url.parameters == {"x": "1"}
    assert url.add_if_absent({"x": "2"}).get("x") == "1"


def test_an_address_takes_what_it_lacks_from_the_defaults() -> None:
    url = parse_address(
        "10.0.0.1,10.0.0.2:2182", {"protocol": "zookeeper", "port": "2181", "path": "p", "k": "v"}
    )
    assert url.protocol == "zookeeper"
    assert url.path == "p"
    assert url.get("k") == "v"
    assert url.backup_address(2181) == "10.0.0.1:2181,10.0.0.2:2182"


def test_an_address_without_protocol_or_port_gets_dubbos() -> None:
    url = parse_address("10.0.0.1", {})
    assert (url.protocol, url.port) == ("dubbo", 9090)


def test_several_registries_in_one_address() -> None:
    assert [u.host for u in parse_addresses("zookeeper://a:1|zookeeper://b:2;zookeeper://c:3", {})] == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize(
    ("consumer", "provider", "matches"),
    [
        ("consumer://c/a.B", "dubbo://p/a.B", True),
        ("consumer://c/a.B", "dubbo://p/a.C", False),
        ("consumer://c/a.B?version=1", "dubbo://p/a.B?version=2", False),
        ("consumer://c/a.B?version=*", "dubbo://p/a.B?version=2", True),
        ("consumer://c/a.B?group=x,y", "dubbo://p/a.B?group=y", True),
        ("consumer://c/a.B", "dubbo://p/a.B?group=y", False),
        ("consumer://c/a.B", "dubbo://p/a.B?enabled=false", False),
        ("consumer://c/a.B", "override://p/a.B?category=configurators", False),
        (
            "consumer://c/a.B?category=providers,configurators",
            "override://p/a.B?category=configurators",
            True,
        ),
        ("consumer://c/a.B?category=*", "override://p/a.B?category=configurators", True),
        ("consumer://c/a.B?category=*,-routers", "override://p/*?category=configurators", True),
    ],
)
def test_matching(consumer: str, provider: str, matches: bool) -> None:
    assert is_match(URL.parse(consumer), URL.parse(provider)) is matches
