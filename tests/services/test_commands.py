"""`headrace services …`: what it prints, and what it says of mistakes."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from headrace.cli import dispatch, frame
from headrace.services import (
    Bootstrap,
    MetadataReportConfig,
    ProtocolConfig,
    RegistryConfig,
    interface,
    java_class,
)
from headrace.services.administration import Administration
from headrace.testing.zookeeper import ZooKeeperServer

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


@java_class("com.acme.Kind")
class Kind(Enum):
    CURRENT = 1
    SAVINGS = 2


@java_class("com.acme.Account")
@dataclass
class Account:
    owner: str
    kind: Kind


@interface("com.acme.Accounts")
class Accounts:
    """Counts the calls that reach it."""

    def __init__(self) -> None:
        self.registered = 0

    def register(self, account: Account, number: int) -> int:
        self.registered += 1
        return number


INVOKE = ["invoke", "com.acme.OrderService", "--version", "1.0"]


class Commands:
    """`headrace services …` in a directory with a module to export."""

    def __init__(self, directory: Path) -> None:
        (directory / "shop.py").write_text(MODULE)
        self.directory = directory
        self.registry = f"embedded://{directory}/registry"
        self.metrics = ""  # the address of the exported service's page

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command in this process: exit code, what it printed, what it complained of."""
        printed, complained = io.StringIO(), io.StringIO()
        given = list(arguments) if "-r" in arguments else [*arguments, "-r", self.registry]
        with contextlib.chdir(self.directory), redirect_stdout(printed), redirect_stderr(complained):
            code = frame.run(lambda: dispatch(["services", *given]))
        return code, printed.getvalue(), complained.getvalue()

    def provider(self, protocol: str) -> str:
        """The address of the exported service's provider."""
        (entry,) = json.loads(self.run("describe", "com.acme.OrderService", "--json")[1])
        return next(
            str(url).partition("/com.acme")[0] for url in entry["providers"] if url.startswith(protocol)
        )

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
    process = commands.start(
        *("shop:OrderService", "--host", "127.0.0.1", "-p", "dubbo:-1", "-p", "rest:-1"),
        *("--metrics", "127.0.0.1:0"),
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "Metrics are served at " in line:
                commands.metrics = line.split()[-1]
            if "Register dubbo service com.acme.OrderService url rest://" in line:
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
    assert listed[1].split() == ["com.acme.OrderService:1.0", "2", "0", "dubbo,rest"]
    described = exported.run("describe", "com.acme.OrderService")[1]
    assert "place(…)" in described
    assert "weight=70" in described
    (entry,) = json.loads(exported.run("describe", "com.acme.OrderService", "--json")[1])
    assert entry["version"] == "1.0"
    assert entry["methods"] == ["fail", "place"]


def test_an_exported_service_serves_metrics(exported: Commands) -> None:
    with urllib.request.urlopen(exported.metrics, timeout=60) as answer:
        page = answer.read().decode()
    assert (
        'dubbo_provider_requests_total{application_name="headrace",group="",'
        'interface="com.acme.OrderService",method="place",version="1.0"}'
    ) in page


def test_a_metrics_address_that_is_none_is_one_sentence(commands: Commands) -> None:
    code, _, complaint = commands.run("export", "shop:OrderService", "--metrics", "9465")
    assert code == 1
    assert "'9465' is no address for metrics: write HOST:PORT, as in 127.0.0.1:9465" in complaint


def test_a_service_is_invoked_with_json(exported: Commands) -> None:
    order = '{"orderId": 1, "article": "tea"}'
    for _ in range(10):  # whichever protocol load balancing would choose
        _, printed, _ = exported.run("invoke", "com.acme.OrderService", "place", order, "--version", "1.0")
        assert json.loads(printed) == {"class": "shop.Order", "orderId": 2, "article": "TEA"}


def test_a_service_is_invoked_over_rest(exported: Commands) -> None:
    order = '{"orderId": 1, "article": "tea"}'
    provider = exported.provider("rest")
    code, printed, _ = exported.run(*INVOKE, "place", order, "--url", provider)
    assert (code, json.loads(printed)) == (0, {"orderId": 2, "article": "TEA"})


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["describe", "com.acme.OrderServic"], 1, "Did you mean 'com.acme.OrderService'?"),
        (["invoke", "com.acme.OrderService", "place", "{bad", "--version", "1.0"], 2, "is not JSON"),
        ([*INVOKE, "plac"], 1, "com.acme.OrderService:1.0 has no method 'plac'. Did you mean 'place'?"),
        ([*INVOKE, "fly"], 1, "has no method 'fly'. It has fail, place."),
        ([*INVOKE, "place"], 1, "place takes 1 argument, 0 sent: place(shop.Order order)"),
        ([*INVOKE, "place", "{}", "{}"], 1, "place takes 1 argument, 2 sent: place(shop.Order order)"),
        (
            [*INVOKE, "place", '{"orderID": 1}'],
            1,
            "shop.Order has no field 'orderID'. Did you mean 'orderId'?",
        ),
        ([*INVOKE, "place", '{"orderId": "one"}'], 1, "does not fit: orderId: Expected int, got str"),
        (["invoke", "com.acme.OrderServic", "place"], 1, "Did you mean 'com.acme.OrderService'?"),
        (["invoke", "x.Y", "place"], 1, "'headrace services list' shows those it knows"),
        (
            ["invoke", "com.acme.OrderService", "place", "5", "--version", "1.0"],
            1,
            "the argument 'order' does not fit",
        ),
        (["invoke", "com.acme.OrderService", "fail", "--version", "1.0"], 1, "sold out"),
        (
            ["invoke", "com.acme.OrderService", "place", "--version", "9"],
            1,
            "with version 9 is registered, only com.acme.OrderService:1.0: call one of them with --version 1.0",
        ),
        (["invoke", "com.acme.OrderService", "place"], 1, "with no version is registered, only"),
        (
            [*INVOKE, "place", "--group", "blue"],
            1,
            "with group blue is registered, only com.acme.OrderService:1.0",
        ),
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
    assert len(complaint) < 400


@pytest.mark.parametrize("protocol", ["dubbo", "rest"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["place", "{}", "--version", "9"], "only com.acme.OrderService:1.0"),
        (["fly", "--version", "1.0"], "It has fail, place"),
        (["place", "--version", "1.0"], "place(shop.Order order)"),
        (["place", '{"orderID": 1}', "--version", "1.0"], "shop.Order has no field 'orderID'"),
        (["place", "5", "--version", "1.0"], "the argument 'order' does not fit"),
        (["fail", "--version", "1.0"], "sold out"),
    ],
)
def test_a_provider_called_directly_says_what_is_wrong(
    exported: Commands, protocol: str, arguments: list[str], said: str
) -> None:
    code, printed, complaint = exported.run(
        "invoke", "com.acme.OrderService", *arguments, "--url", exported.provider(protocol)
    )
    assert (code, printed) == (1, "")
    assert said in complaint
    assert complaint.count("headrace: ") == 1
    assert len(complaint) < 400


def test_unknown_fields_are_left_out_without_the_check(exported: Commands) -> None:
    order = '{"orderId": 1, "article": "tea", "colour": "green"}'
    code, printed, _ = exported.run(*INVOKE, "place", order, "--no-check")
    assert code == 0
    assert json.loads(printed)["article"] == "TEA"


def test_a_provider_without_the_service_names_those_it_has(exported: Commands) -> None:
    code, _, complaint = exported.run(
        "invoke", "com.acme.Orders", "place", "--url", exported.provider("dubbo")
    )
    assert code == 1
    assert "does not export com.acme.Orders, only com.acme.OrderService:1.0" in complaint


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["regster", "{}"], "com.acme.Accounts has no method 'regster'. Did you mean 'register'?"),
        (["register"], "0 arguments were given, but the method is register(com.acme.Account, long)."),
        (
            ["register", "{}", '"5"'],
            "Argument 2 of register(com.acme.Account, long) does not fit: a whole number",
        ),
        (["register", "{}", "null"], "null is not possible for a primitive type"),
        (["register", "[]", "5"], "an object is expected for com.acme.Account, not a list"),
        (
            ["register", '{"onwer": "Ann"}', "5"],
            "com.acme.Account has no field 'onwer'. Did you mean 'owner'?",
        ),
        (["register", '{"owner": 5}', "5"], "owner: a text is expected for java.lang.String"),
        (
            ["register", '{"kind": "SAVING"}', "5"],
            "com.acme.Kind has no member 'SAVING'. Did you mean 'SAVINGS'?",
        ),
    ],
)
def test_a_published_description_is_compared_before_the_call(
    commands: Commands,
    application: Callable[..., Bootstrap],
    zookeeper: ZooKeeperServer,
    zookeeper_registry: Callable[..., RegistryConfig],
    arguments: list[str],
    said: str,
) -> None:
    registry = zookeeper_registry()
    report = MetadataReportConfig(address=f"zookeeper://{zookeeper.connect_string}", group=registry.group)
    app = application("bank", registry=registry, metadata_report=report)
    accounts = Accounts()
    app.service(accounts)
    app.start()
    where = f"{registry.address}?group={registry.group}"
    account = '{"owner": "Ann", "kind": "SAVINGS"}'
    assert commands.run("invoke", "com.acme.Accounts", "register", account, "5", "-r", where)[0] == 0
    code, printed, complaint = commands.run("invoke", "com.acme.Accounts", *arguments, "-r", where)
    assert (code, printed) == (1, "")
    assert said in complaint
    assert accounts.registered == 1


def test_a_zookeeper_that_is_away_is_one_line(commands: Commands) -> None:
    """In a process of its own, where nothing but the command decides what reaches the terminal."""
    command = [sys.executable, "-m", "headrace.cli", "services", "list", "-r"]
    ended = subprocess.run(
        [*command, "zookeeper://127.0.0.1:1?timeout=300"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "the ZooKeeper registry at 127.0.0.1:1 does not answer within 0.3 s" in line


def test_properties_win_over_options(commands: Commands, application: Callable[..., Bootstrap]) -> None:
    app = application(
        properties={"dubbo.protocol.name": "rest"},
        protocol=ProtocolConfig(name="dubbo", host="127.0.0.1", port=-1),
    )
    config = app.service(Administration("127.0.0.1:1"), scope="none")
    config.export()
    assert config.urls[0].protocol == "rest"
