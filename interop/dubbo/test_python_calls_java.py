"""A Python consumer calls providers of Java Dubbo 2.7.3, found through ZooKeeper."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from dubbo_model import AllTypes, Colour, OrderError, Person, person

from headrace.services import (
    Bootstrap,
    JavaException,
    MethodConfig,
    ProtocolConfig,
    ReferenceConfig,
    RegistryConfig,
    RpcException,
    attach,
    interface,
    reply_attachments,
)
from headrace.services.hessian2 import Int
from headrace.testing.zookeeper import ZooKeeperServer


def registry(zookeeper: ZooKeeperServer) -> str:
    """A place of its own in ZooKeeper."""
    return f"{zookeeper.connect_string}?group=d{time.monotonic_ns()}"


@pytest.fixture
def where(zookeeper: ZooKeeperServer) -> str:
    return registry(zookeeper)


@pytest.fixture
def application(where: str) -> Iterator[Bootstrap]:
    with Bootstrap("python-consumer", registry=RegistryConfig(address=f"zookeeper://{where}")) as made:
        yield made


@pytest.fixture(scope="module")
def shared(java: Any, zookeeper: ZooKeeperServer) -> Iterator[Bootstrap]:
    """An application with a Java provider in its registry, for the tests that leave both alone."""
    place = registry(zookeeper)
    with (
        java.provider("--zookeeper", place, "--name", "java"),
        Bootstrap("python-consumer", registry=RegistryConfig(address=f"zookeeper://{place}")) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def service(shared: Bootstrap) -> AllTypes:
    fire, slow = MethodConfig(name="fire", return_=False), MethodConfig(name="slow", timeout=500, retries=0)
    return shared.reference(AllTypes, timeout=10_000, methods=[fire, slow])


def test_every_type_goes_there_and_back(service: AllTypes) -> None:
    assert service.echo_boolean(True) is True
    assert service.echo_byte(-128) == -128
    assert service.echo_short(-32768) == -32768
    for number in (0, -16, 48, 2048, -262145, 2**31 - 1, -(2**31)):
        assert service.echo_int(number) == number
    for number in (0, 16, 2048, 262144, 2**31, 2**63 - 1, -(2**63)):
        assert service.echo_long(number) == number
    assert service.echo_float(0.5) == 0.5
    for ratio in (0.0, 1.0, -3.5, 1e300):
        assert service.echo_double(ratio) == ratio
    assert service.echo_char("漢") == "漢"
    assert service.echo_integer(None) is None
    assert service.echo_boxed_long(7) == 7
    for text in (None, "", "plain", "Jörg 漢字 😀", "😀" * 40_000):
        assert service.echo_string(text) == text
    assert service.echo_bytes(b"\xc8" * 100_000) == b"\xc8" * 100_000
    assert service.echo_ints([1, 2]) == [1, 2]
    assert service.echo_strings(["a", "b"]) == ["a", "b"]
    moment = datetime(2024, 5, 6, 7, 8, 9, 123_000, tzinfo=UTC)
    assert service.echo_date(moment) == moment
    assert service.echo_instant(moment) == moment
    assert service.echo_local_date(date(2024, 2, 29)) == date(2024, 2, 29)
    assert service.echo_local_date_time(moment.replace(tzinfo=None)) == moment.replace(tzinfo=None)
    assert service.echo_decimal(Decimal("-12.3400")) == Decimal("-12.3400")
    assert service.echo_big_integer(10**40) == 10**40
    assert service.echo_colour(Colour.BLUE) is Colour.BLUE
    assert service.echo_longs([1, 2, 2**40]) == [1, 2, 2**40]
    assert service.echo_set({"a", "b"}) == {"a", "b"}
    assert service.echo_object(["a", 1, Colour.RED]) == ["a", 1, Colour.RED]
    assert service.join("t", 1, 2**40, 0.5, True, ["x", "y"]) == "t|1|1099511627776|0.5|true|x,y"
    service.nothing()


def test_beans_keep_their_cycles_and_shared_parts(service: AllTypes) -> None:
    copy = service.echo_person(person())
    assert copy == person()
    assert copy.friend is copy
    assert copy.places is not None
    assert copy.places[0] is copy.home
    assert service.echo_person(Person()) == Person()
    assert service.echo_people([person(), Person(name="Ann")]) == [person(), Person(name="Ann")]
    assert service.echo_map({"ann": person(), "none": None}) == {"ann": person(), "none": None}


def test_an_overloaded_method_is_chosen_by_its_annotations(shared: Bootstrap) -> None:
    @interface("headrace.interop.AllTypes")
    class OverInt:
        def over(self, number: Int) -> str: ...

    @interface("headrace.interop.AllTypes")
    class OverString:
        def over(self, text: str) -> str: ...

    assert shared.reference(OverInt).over(5) == "int 5"
    assert shared.reference(OverString).over("five") == "string five"


def test_javas_exceptions_are_raised(service: AllTypes) -> None:
    with pytest.raises(OrderError, match="no such order") as own:
        service.fail_own("no such order", 7)
    assert own.value.error_code == 7
    assert str(own.value.__cause__) == "java.lang.IllegalStateException: the cause"
    with pytest.raises(JavaException, match=r"java\.io\.IOException: broken"):
        service.fail_checked("broken")
    with pytest.raises(JavaException) as runtime:
        service.fail_runtime("wrong")
    assert runtime.value.class_name == "java.lang.IllegalArgumentException"
    assert str(runtime.value.stack_trace[0]).startswith("headrace.interop.AllTypesImpl.failRuntime")


def test_a_slow_answer_is_a_timeout(service: AllTypes) -> None:
    with pytest.raises(RpcException, match="timeout"):
        asyncio.run(service.slow(3000))


def test_attachments_travel_both_ways(service: AllTypes) -> None:
    with attach({"trace.id": "t-1"}):
        assert service.attachments()["trace.id"] == "t-1"
    assert service.attach("back") == "back"
    assert reply_attachments()["reply"] == "back"


def test_a_one_way_call_arrives(service: AllTypes, eventually: Callable[..., None]) -> None:
    mark = str(uuid.uuid4())
    assert service.fire(mark) is None
    eventually(lambda: service.fired(mark) == 1)


def test_a_generic_call_needs_no_classes(shared: Bootstrap) -> None:
    generic = ReferenceConfig(interface="headrace.interop.AllTypes", runtime=shared.runtime).get_generic()
    assert generic.invoke("echoString", ["java.lang.String"], ["g"]) == "g"
    answer = generic.invoke(
        "echoPerson", ["headrace.interop.Person"], [{"name": "Ann", "age": 9, "home": {"houseNumber": 3}}]
    )
    assert isinstance(answer, dict)
    assert answer["class"] == "headrace.interop.Person"
    assert (answer["name"], answer["age"], answer["home"]["houseNumber"]) == ("Ann", 9, 3)
    with pytest.raises(JavaException, match="wrong"):
        generic.invoke("failRuntime", ["java.lang.String"], ["wrong"])


def test_a_generic_call_finds_its_method_by_name_alone(shared: Bootstrap) -> None:
    generic = ReferenceConfig(interface="headrace.interop.AllTypes", runtime=shared.runtime).get_generic()
    assert generic.invoke("echoLong", None, [5]) == 5
    answer = generic.invoke("echoPerson", None, [{"name": "Ann", "age": 9}])
    assert isinstance(answer, dict)
    assert answer["name"] == "Ann"
    with pytest.raises(RpcException, match="Not unique method"):
        generic.invoke("over", None, [5])


def test_a_tagged_java_provider_serves_those_who_ask_for_its_tag(
    java: Any, where: str, application: Bootstrap, eventually: Callable[..., None]
) -> None:
    with (
        java.provider("--zookeeper", where, "--name", "plain"),
        java.provider("--zookeeper", where, "--name", "gray", "--tag", "gray"),
    ):
        anybody, tagged = application.reference(AllTypes), application.reference(AllTypes, tag="gray")
        assert {anybody.whoami() for _ in range(20)} == {"plain"}
        assert {tagged.whoami() for _ in range(20)} == {"gray"}
        with attach({"dubbo.tag": "green"}):
            assert tagged.whoami() == "plain"


INVOKED = [
    (["echoString", '"g"'], 0, '"g"'),
    (["over", "5"], 0, '"int 5"'),
    (["over", '"five"'], 0, '"string five"'),
    (["echoPeople", '[{"name": "Ann"}]'], 0, '"name":"Ann"'),
    (["echoStrin", '"g"'], 1, "Did you mean 'echoString'?"),
    (["echoString"], 1, "0 arguments were given, but the method is echoString(java.lang.String)."),
    (["echoString", "5"], 1, "a text is expected for java.lang.String, not a whole number"),
    (["over", "true"], 1, "Argument 1 of over("),
    (["echoPerson", '{"nam": "Ann"}'], 1, "headrace.interop.Person has no field 'nam'. Did you mean 'name'?"),
    (["echoPeople", '[{"nam": "Ann"}]'], 1, "has no field 'nam'"),
    (
        ["echoPerson", '{"home": {"houseNumbr": 3}}'],
        1,
        "home: headrace.interop.Address has no field 'houseNumbr'",
    ),
    (["echoColour", '"BLU"'], 1, "headrace.interop.Colour has no member 'BLU'. Did you mean 'BLUE'?"),
]


def test_a_call_is_compared_with_what_a_java_provider_published(
    java: Any, where: str, zookeeper: ZooKeeperServer
) -> None:
    """Java would ignore an unknown field and answer with nulls."""
    with java.provider("--zookeeper", where, "--metadata", zookeeper.connect_string, "--name", "java"):
        for arguments, code, said in INVOKED:
            command = ["services", "invoke", "headrace.interop.AllTypes", *arguments]
            ended = subprocess.run(
                [sys.executable, "-m", "headrace.cli", *command, "-r", f"zookeeper://{where}"],
                capture_output=True,
                text=True,
            )
            assert (ended.returncode, said in ended.stdout + ended.stderr) == (code, True), ended


def test_the_version_group_and_token_come_from_the_registry(
    java: Any, where: str, application: Bootstrap
) -> None:
    chosen = ("--version", "1.2.0", "--group", "blue")
    with java.provider("--zookeeper", where, *chosen, "--name", "chosen", "--token", "secret") as provider:
        assert application.reference(AllTypes, version="1.2.0", group="blue").whoami() == "chosen"
        address = f"dubbo://127.0.0.1:{provider.ready}"
        stranger = application.reference(AllTypes, url=address, version="1.2.0", group="blue")
        with pytest.raises(RpcException, match="token"):
            stranger.whoami()


def test_heartbeats_keep_an_idle_connection(java: Any, where: str) -> None:
    with (
        java.provider("--zookeeper", where, "--heartbeat", "500", "--name", "idle") as provider,
        Bootstrap(
            "python-consumer",
            registry=RegistryConfig(address=f"zookeeper://{where}"),
            protocol=ProtocolConfig(name="dubbo", heartbeat=500),
        ) as application,
    ):
        service = application.reference(AllTypes)
        assert service.whoami() == "idle"
        before = provider.connections()
        time.sleep(5)  # ten heartbeats; silence for three would cut the connection
        assert provider.connections() == before
        assert service.whoami() == "idle"


def test_calls_spread_over_two_providers_and_survive_the_loss_and_return_of_one(
    java: Any, python: Any, where: str, application: Bootstrap, eventually: Callable[..., None]
) -> None:
    with (
        java.provider("--zookeeper", where, "--name", "java") as first,
        python.provider("--zookeeper", where, "--name", "python"),
    ):
        service = application.reference(AllTypes)

        def answered() -> set[str]:
            return set(Counter(service.whoami() for _ in range(40)))

        eventually(lambda: answered() == {"java", "python"})
        first.kill()
        assert answered() == {"python"}
        with java.provider("--zookeeper", where, "--name", "java"):
            eventually(lambda: answered() == {"java", "python"})
