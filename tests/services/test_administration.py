"""The cluster's administration as a service, and the services commands, against a real broker and registry."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import dispatch, frame
from headrace.client import Consumer, Producer
from headrace.services import Bootstrap, ProtocolConfig
from headrace.services.administration import Administration, AdministrationApi, AdministrationError


@pytest.fixture
def administration(application: Callable[..., Bootstrap], bootstrap: str) -> AdministrationApi:
    """The service as a consumer sees it, over the wire."""
    provider = application("headrace")
    config = provider.service(Administration(bootstrap), scope="remote")
    provider.start()
    consumer = application("manager")
    return consumer.reference(AdministrationApi, url=config.urls[0].identity, timeout=20_000, retries=0)


def test_topics_are_made_described_changed_and_deleted(administration: AdministrationApi) -> None:
    administration.create_topic("orders", 3, 1, {"retention.ms": "1000"})
    assert "orders" in administration.topics()
    described = administration.describe_topic("orders")
    assert [p.partition for p in described.partitions] == [0, 1, 2]
    assert described.settings["retention.ms"] == "1000"
    administration.add_partitions("orders", 4)
    administration.set_topic("orders", {"retention.ms": "2000"})
    described = administration.describe_topic("orders")
    assert len(described.partitions) == 4
    assert described.settings["retention.ms"] == "2000"
    administration.delete_topic("orders")
    assert "orders" not in administration.topics()


def test_groups_and_their_lag(administration: AdministrationApi, bootstrap: str) -> None:
    administration.create_topic("events", 1)
    with Producer(bootstrap) as producer:
        for number in range(5):
            producer.send_and_wait("events", str(number))
    with Consumer(bootstrap, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("events")
        read: list[Any] = []
        while len(read) < 3:
            read += consumer.poll(1.0, max_records=3 - len(read))
        consumer.commit(read)
        assert administration.describe_group("readers").state == "stable"
    assert "readers" in administration.groups()
    (behind,) = administration.lag("readers")
    assert (behind.topic, behind.committed, behind.end, behind.lag) == ("events", 3, 5, 2)
    (moved,) = administration.reset_group("readers", "events", "earliest")
    assert moved.lag == 5
    administration.delete_group("readers")
    assert "readers" not in administration.groups()


def test_the_clusters_health(administration: AdministrationApi, bootstrap: str) -> None:
    health = administration.health()
    assert health.healthy
    assert [f"{broker.host}:{broker.port}" for broker in health.brokers] == [bootstrap]
    assert health.brokers[0].is_controller
    assert health.under_replicated == health.offline == []


def test_what_the_cluster_refuses_is_one_sentence(administration: AdministrationApi) -> None:
    with pytest.raises(AdministrationError, match="nothing") as raised:
        administration.describe_topic("nothing")
    assert "\n" not in str(raised.value)
    with pytest.raises(AdministrationError, match="earliest or latest"):
        administration.reset_group("g", "t", "yesterday")


# -- the commands --------------------------------------------------------------------------------------------

MODULE = textwrap.dedent(
    '''
    from dataclasses import dataclass
    from headrace.services import interface, service


    @dataclass
    class Order:
        order_id: int
        article: str


    @service(version="1.0", weight=70)
    @interface("com.acme.OrderService")
    class OrderService:
        """Orders."""

        def place(self, order: Order) -> Order:
            """Place an order."""
            return Order(order.order_id + 1, order.article.upper())

        def fail(self) -> None:
            raise ValueError("sold out")


    class NeedsArguments:
        def __init__(self, value: int) -> None: ...


    broken = 5
    '''
)


class Commands:
    """`headrace services …` in a directory with a module to export."""

    def __init__(self, directory: Path) -> None:
        (directory / "shop.py").write_text(MODULE)
        self.directory = directory
        self.registry = f"embedded://{directory}/registry"

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command in this process: exit code, what it printed, what it complained of."""
        printed, complained = io.StringIO(), io.StringIO()
        given = list(arguments) if "-r" in arguments else [*arguments, "-r", self.registry]
        with contextlib.chdir(self.directory), redirect_stdout(printed), redirect_stderr(complained):
            code = frame.run(lambda: dispatch(["services", *given]))
        return code, printed.getvalue(), complained.getvalue()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "services", "export", *arguments, "-r", self.registry],
            cwd=self.directory,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def exported(commands: Commands) -> Iterator[Commands]:
    """The module's service, exported by the command."""
    process = commands.start("shop:OrderService", "--host", "127.0.0.1", "--protocol", "dubbo:-1")
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "Register dubbo service com.acme.OrderService" in line:
                break
        else:
            pytest.fail("the service was never registered")
        yield commands
    finally:
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(30) == 0


def test_a_service_is_listed_and_described(exported: Commands) -> None:
    listed = exported.run("list")[1].splitlines()
    assert listed[0].split() == ["SERVICE", "PROVIDERS", "CONSUMERS", "PROTOCOLS"]
    assert listed[1].split() == ["com.acme.OrderService:1.0", "1", "0", "dubbo"]
    described = exported.run("describe", "com.acme.OrderService")[1]
    assert "place(…)" in described
    assert "weight=70" in described
    (entry,) = json.loads(exported.run("describe", "com.acme.OrderService", "--json")[1])
    assert entry["version"] == "1.0"
    assert entry["methods"] == ["fail", "place"]


def test_a_service_is_invoked_with_json(exported: Commands) -> None:
    order = '{"orderId": 1, "article": "tea"}'
    _, printed, _ = exported.run("invoke", "com.acme.OrderService", "place", order, "--version", "1.0")
    assert json.loads(printed) == {"class": "shop.Order", "orderId": 2, "article": "TEA"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["describe", "com.acme.OrderServic"], 1, "Did you mean 'com.acme.OrderService'?"),
        (["invoke", "com.acme.OrderService", "place", "{bad", "--version", "1.0"], 2, "is not JSON"),
        (["invoke", "com.acme.OrderService", "fly", "--version", "1.0"], 1, "No such method fly"),
        (
            ["invoke", "com.acme.OrderService", "place", "5", "--version", "1.0"],
            1,
            "the argument 'order' does not fit",
        ),
        (["invoke", "com.acme.OrderService", "fail", "--version", "1.0"], 1, "sold out"),
        (["invoke", "com.acme.OrderService", "place", "--version", "9"], 1, "No provider available"),
        (["invoke", "x.Y", "m", "1", "2", "--types", "int"], 2, "--types names 1 types, but 2 arguments"),
        (
            ["invoke", "x.Y", "m", "--url", "dubbo://127.0.0.1:1"],
            1,
            "Failed to connect to server 127.0.0.1:1",
        ),
        (["list", "-r", "N/A"], 2, "There is no registry to ask"),
        (["list", "-r", "carrier://pigeon"], 1, "no registry named 'carrier'"),
        (["export", "shop"], 2, "Name what to export as module:Class"),
        (["export", "nowhere:X"], 1, "There is no module 'nowhere' here"),
        (["export", "shop:OrderServic"], 1, "Did you mean 'OrderService'?"),
        (["export", "shop:NeedsArguments"], 1, "cannot be made without arguments"),
        (["export", "shop:OrderService", "-p", "pigeon"], 1, "names no known protocol"),
        (["export", "shop:OrderService", "-p", "dubbo:http"], 2, "--protocol takes NAME or NAME:PORT"),
        (["export", "shop:OrderService", "-D", "dubbo.protocol.port"], 2, "-D takes key=value"),
        (
            ["export", "shop:OrderService", "-D", "dubbo.protocol.port=x"],
            1,
            "dubbo.protocol.port=x is not a whole",
        ),
    ],
)
def test_every_mistake_is_one_sentence(
    exported: Commands, arguments: list[str], code: int, said: str
) -> None:
    got, _, complaint = exported.run(*arguments)
    assert got == code
    assert said in complaint
    assert "Traceback" not in complaint
    assert complaint.count("headrace: ") == 1


def test_properties_win_over_options(commands: Commands, application: Callable[..., Bootstrap]) -> None:
    app = application(
        properties={"dubbo.protocol.name": "rest"},
        protocol=ProtocolConfig(name="dubbo", host="127.0.0.1", port=-1),
    )
    config = app.service(Administration("127.0.0.1:1"), scope="none")
    config.export()
    assert config.urls[0].protocol == "rest"
