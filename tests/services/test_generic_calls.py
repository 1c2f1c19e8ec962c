"""Calls without the interface: over every protocol a service is exported with, and what is said of a wrong call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.services import (
    Bootstrap,
    JavaException,
    ProtocolConfig,
    ReferenceConfig,
    RegistryConfig,
    RpcException,
    ServiceConfig,
    attach,
    current,
    interface,
    java_class,
)
from headrace.services.generic import GenericService
from headrace.services.url import URL


@java_class("com.acme.Address")
@dataclass
class Address:
    street: str
    house_number: int


@java_class("com.acme.Customer")
@dataclass
class Customer:
    name: str
    addresses: list[Address]


@interface("com.acme.Customers")
class Customers:
    def register(self, customer: Customer, note: str) -> Customer:
        return customer

    def strip(self, text: str) -> str:
        if not text:
            raise ValueError("there is nothing to strip")
        return text.strip()

    def attached(self) -> list[str]:
        return sorted(current().attachments)


ANN = {"name": "Ann", "addresses": [{"street": "Mill Lane", "houseNumber": 3}]}
PROTOCOLS = ("dubbo", "rest")


def local(name: str) -> ProtocolConfig:
    return ProtocolConfig(name=name, host="127.0.0.1", port=-1)


@pytest.fixture
def provide(application: Callable[..., Bootstrap]) -> Callable[..., list[URL]]:
    def make(*protocols: str, registry: RegistryConfig | None = None, **settings: Any) -> list[URL]:
        app = application("shop", registry=registry, protocol=[local(name) for name in protocols])
        config = app.service(Customers(), scope="remote", **settings)
        app.start()
        return config.urls

    return make


@pytest.fixture
def generic(application: Callable[..., Bootstrap]) -> Callable[..., GenericService]:
    def make(registry: RegistryConfig | None = None, **settings: Any) -> GenericService:
        consumer = application("consumer", registry=registry)
        settings.setdefault("interface", "com.acme.Customers")
        return ReferenceConfig[Any](runtime=consumer.runtime, **settings).get_generic()

    return make


def test_a_service_exported_over_dubbo_and_rest_answers_every_generic_call(
    provide: Callable[..., list[URL]],
    generic: Callable[..., GenericService],
    registry: Callable[..., RegistryConfig],
) -> None:
    provide("dubbo", "rest", registry=registry())
    customers = generic(registry(), retries=0)
    answers = [
        customers.invoke("register", ["com.acme.Customer", "java.lang.String"], [ANN, "x"]) for _ in range(40)
    ]
    assert all(answer == answers[0] for answer in answers)
    assert isinstance(answers[0], dict)
    assert answers[0]["class"] == "com.acme.Customer"  # rest's JSON has no classes


def test_a_service_exported_over_rest_alone_is_asked_as_rest_is(
    provide: Callable[..., list[URL]],
    generic: Callable[..., GenericService],
    registry: Callable[..., RegistryConfig],
) -> None:
    provide("rest", registry=registry())
    customers = generic(registry())
    assert customers.invoke("register", ["com.acme.Customer", "java.lang.String"], [ANN, "x"]) == ANN
    with pytest.raises(JavaException) as raised:
        customers.invoke("strip", ["java.lang.String"], [""])
    assert raised.value.class_name == "org.apache.dubbo.rpc.service.GenericException"
    assert raised.value.fields["exceptionClass"] == "java.lang.IllegalArgumentException"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_generic_implementation_answers_generic_calls(
    application: Callable[..., Bootstrap],
    generic: Callable[..., GenericService],
    registry: Callable[..., RegistryConfig],
    protocol: str,
) -> None:
    class Anything(GenericService):
        def invoke(self, method: str, parameter_types: list[str], arguments: list[object]) -> object:
            return [method, arguments]

    app = application("shop", registry=registry(), protocol=local(protocol))
    config = app.service(ServiceConfig(interface="com.acme.Customers", ref=Anything(), scope="remote"))
    app.start()
    assert generic(registry()).invoke("fly", ["int"], [5]) == ["fly", [5]]
    assert generic(url=f"{protocol}://{config.urls[0].address}").invoke("fly", ["int"], [5]) == ["fly", [5]]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("method", "arguments", "said"),
    [
        ("registr", [ANN, "x"], r"registr.*Did you mean 'register'\?"),
        ("fly", [], r"fly.*It has attached, register, strip"),
        ("register", [ANN], r"register.*: register\(com.acme.Customer customer, java.lang.String note\)"),
        ("strip", ["a", "b"], r"strip.* 1 argument, 2 .*: strip\(java.lang.String text\)"),
        ("strip", [5], "'text' does not fit: Expected str, got int"),
        ("register", [{"nam": "Ann"}, "x"], r"com.acme.Customer has no field 'nam'.*Did you mean 'name'\?"),
        (
            "register",
            [{"name": "Ann", "addresses": [{"zip": "Mill Lane"}]}, "x"],
            "com.acme.Address has no field 'zip'.*It has street, houseNumber",
        ),
        (
            "register",
            [{"name": "Ann", "addresses": [{"street": "Mill Lane", "houseNumber": "three"}]}, "x"],
            "'customer' does not fit: .*houseNumber: Expected int, got str",
        ),
    ],
)
def test_a_wrong_generic_call_is_told_what_is_wrong(
    provide: Callable[..., list[URL]],
    generic: Callable[..., GenericService],
    protocol: str,
    method: str,
    arguments: list[object],
    said: str,
) -> None:
    customers = generic(url=f"{protocol}://{provide(protocol)[0].address}", retries=0)
    with pytest.raises(RpcException, match=said):
        customers.invoke(method, None, arguments)  # type: ignore[arg-type]  # by name alone, as Java allows


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_caller_may_leave_unknown_fields_to_the_provider(
    provide: Callable[..., list[URL]], generic: Callable[..., GenericService], protocol: str
) -> None:
    """As Java's generic callers do, whose classes may have more fields than the provider's."""
    customers = generic(url=f"{protocol}://{provide(protocol)[0].address}")
    with attach({"generic.strict": "false"}):
        answer = customers.invoke("register", None, [{**ANN, "class": "x.Y", "age": 5}, "x"])  # type: ignore[arg-type]
    assert isinstance(answer, dict)
    assert answer["name"] == "Ann"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_implementation_sees_only_the_attachments_of_its_caller(
    provide: Callable[..., list[URL]], generic: Callable[..., GenericService], protocol: str
) -> None:
    customers = generic(url=f"{protocol}://{provide(protocol)[0].address}")
    with attach({"trace": "t1"}):
        assert customers.invoke("attached", [], []) == ["trace"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wrong_version_is_told_which_there_are(
    provide: Callable[..., list[URL]], generic: Callable[..., GenericService], protocol: str
) -> None:
    address = provide(protocol, version="1.0", group="blue")[0].address
    customers = generic(url=f"{protocol}://{address}", version="9", retries=0)
    with pytest.raises(RpcException, match=r"blue/com\.acme\.Customers:1\.0"):
        customers.invoke("attached", [], [])
