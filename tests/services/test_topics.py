"""headrace://: calls through topics of a real broker, which neither end has to be there for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from headrace.client import Admin
from headrace.services import (
    Bootstrap,
    JavaException,
    MethodConfig,
    ProtocolConfig,
    RpcCode,
    RpcException,
    attach,
    current,
    interface,
)
from headrace.services.protocols.topics import names
from headrace.testing.broker import BrokerThread


class Ledger:
    """Counts how often each transfer was really made."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.entered, self.go_on = threading.Event(), threading.Event()


@interface("com.acme.Bank")
class Bank:
    def __init__(self, ledger: Ledger | None = None) -> None:
        self._ledger = ledger or Ledger()

    def transfer(self, amount: int) -> int:
        self._ledger.made.append(str(current().attachments[names.ID]))
        return amount

    def fail(self) -> None:
        raise ValueError("no money")

    def note(self, text: str) -> None:
        self._ledger.made.append(text)

    def slowly(self) -> str:
        self._ledger.entered.set()
        self._ledger.go_on.wait(60)
        self._ledger.made.append("slowly")
        return "done"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    """A broker that does not wait for more members before a group begins."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    running = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    yield running
    running.stop()


@pytest.fixture
def version() -> str:
    """A service of its own for each test, and so topics of its own."""
    return str(time.monotonic_ns())


@pytest.fixture
def provide(application: Callable[..., Bootstrap], bootstrap: str, version: str) -> Callable[..., Bootstrap]:
    host, _, port = bootstrap.partition(":")

    def make(ledger: Ledger, properties: dict[str, str] | None = None, **settings: Any) -> Bootstrap:
        protocol = ProtocolConfig(name="headrace", host=host, port=int(port))
        app = application("bank", properties, protocol=protocol)
        app.service(Bank(ledger), scope="remote", version=version, **settings)
        return app.start()

    return make


@pytest.fixture
def bank(application: Callable[..., Bootstrap], bootstrap: str, version: str) -> Callable[..., Bank]:
    def make(**settings: Any) -> Bank:
        given = {"timeout": 30_000, "retries": 0, **settings}
        return application(f"web-{version}").reference(
            Bank, url=f"headrace://{bootstrap}", version=version, **given
        )

    return make


def test_a_call_is_answered(provide: Callable[..., Bootstrap], bank: Callable[..., Bank]) -> None:
    ledger = Ledger()
    provide(ledger)
    proxy = bank()
    assert proxy.transfer(5) == 5
    with pytest.raises(JavaException, match=r"java\.lang\.IllegalArgumentException: no money"):
        proxy.fail()
    assert len(ledger.made) == 1


def test_a_call_that_was_refused_can_be_made_under_the_same_id(
    provide: Callable[..., Bootstrap], bank: Callable[..., Bank]
) -> None:
    ledger = Ledger()
    provide(ledger, token="secret")
    proxy = bank()
    with attach({names.ID: "transfer-1"}), pytest.raises(RpcException, match="Invalid token"):
        proxy.transfer(1)
    with attach({names.ID: "transfer-1", "token": "secret"}):
        assert proxy.transfer(1) == 1
        assert proxy.transfer(1) == 1
    assert ledger.made == ["transfer-1"]


async def test_many_calls_at_once(
    provide: Callable[..., Bootstrap], application: Callable[..., Bootstrap], bootstrap: str, version: str
) -> None:
    ledger = Ledger()
    await asyncio.to_thread(provide, ledger)
    proxy = await application("many").reference_async(
        Bank, url=f"headrace://{bootstrap}", version=version, timeout=30_000, retries=0
    )
    answers = await asyncio.gather(*(proxy.transfer(n) for n in range(100)))  # type: ignore[arg-type]
    assert list(answers) == list(range(100))
    assert len(set(ledger.made)) == 100


def test_a_provider_that_stops_answers_what_it_serves_and_nobody_repeats_it(
    provide: Callable[..., Bootstrap],
    bank: Callable[..., Bank],
    bootstrap: str,
    version: str,
    eventually: Callable[..., None],
) -> None:
    ledger = Ledger()
    app = provide(ledger, {"dubbo.service.shutdown.wait": "30000"})
    (exporter,) = app.runtime.protocol("headrace")._exporters  # type: ignore[attr-defined]
    proxy = bank()
    answers: list[str] = []
    caller = threading.Thread(target=lambda: answers.append(proxy.slowly()))
    caller.start()
    assert ledger.entered.wait(30)
    stopping = threading.Thread(target=app.stop)
    stopping.start()
    eventually(lambda: exporter._task is None)
    ledger.go_on.set()
    stopping.join()
    caller.join(30)
    assert answers == ["done"]
    with Admin(bootstrap) as admin:  # the next provider begins behind it
        assert sum(admin.group_offsets(f"services.com.acme.Bank.{version}").values()) == 1


def test_a_call_waits_for_a_provider_that_is_away(
    provide: Callable[..., Bootstrap], bank: Callable[..., Bank]
) -> None:
    ledger = Ledger()
    provide(ledger).stop()
    proxy = bank()
    answers: list[int] = []
    caller = threading.Thread(target=lambda: answers.append(proxy.transfer(7)))
    caller.start()
    provide(ledger)
    caller.join(30)
    assert answers == [7]


def test_a_caller_that_gave_up_gets_the_answer_under_the_same_id(
    provide: Callable[..., Bootstrap], bank: Callable[..., Bank], eventually: Callable[..., None]
) -> None:
    ledger = Ledger()
    provide(ledger).stop()
    impatient = bank(timeout=200)
    with attach({names.ID: "transfer-17"}):
        with pytest.raises(
            RpcException, match=r"call again with the attachment headrace.id=transfer-17"
        ) as raised:
            impatient.transfer(9)
        assert raised.value.code == RpcCode.TIMEOUT
        provide(ledger)
        eventually(lambda: ledger.made == ["transfer-17"])  # served although nobody waited
        assert bank().transfer(9) == 9
    assert ledger.made == ["transfer-17"]  # and not made a second time


def test_a_retry_is_the_same_call(
    provide: Callable[..., Bootstrap], bank: Callable[..., Bank], eventually: Callable[..., None]
) -> None:
    ledger = Ledger()
    provide(ledger).stop()
    with pytest.raises(RpcException, match="Tried 3 times"):
        bank(timeout=100, retries=2).transfer(3)  # three requests are in the log now
    provide(ledger)
    assert bank().transfer(4) == 4
    eventually(lambda: len(ledger.made) == 2)
    assert len(set(ledger.made)) == 2


def test_a_one_way_call_leaves_no_reply(
    provide: Callable[..., Bootstrap], bank: Callable[..., Bank], eventually: Callable[..., None]
) -> None:
    ledger = Ledger()
    provide(ledger)
    bank(methods=[MethodConfig(name="note", return_=False)]).note("hello")
    eventually(lambda: ledger.made == ["hello"])


def test_requests_can_be_replayed(
    provide: Callable[..., Bootstrap],
    bank: Callable[..., Bank],
    bootstrap: str,
    version: str,
    eventually: Callable[..., None],
) -> None:
    ledger = Ledger()
    app = provide(ledger)
    proxy = bank()
    for amount in range(3):
        proxy.transfer(amount)
    app.stop()
    topic = f"services.com.acme.Bank.{version}"
    with Admin(bootstrap) as admin:
        eventually(lambda: admin.group(topic).state.lower() in ("empty", "dead"))
        admin.reset_group(topic, "earliest", topic)
    again = Ledger()
    provide(again)
    eventually(lambda: sorted(again.made) == sorted(ledger.made))


def test_two_providers_share_the_work_and_each_request_is_served(
    provide: Callable[..., Bootstrap], bank: Callable[..., Bank]
) -> None:
    ledgers = [Ledger(), Ledger()]
    for ledger in ledgers:
        provide(ledger)
    proxy = bank()
    assert [proxy.transfer(n) for n in range(20)] == list(range(20))
    assert len({made for ledger in ledgers for made in ledger.made}) == 20


def test_one_service_can_be_served_from_two_clusters(
    make_broker: Callable[..., BrokerThread],
    application: Callable[..., Bootstrap],
    bootstrap: str,
    version: str,
) -> None:
    other = make_broker({"group.initial.rebalance.delay.ms": "0"}).bootstrap
    places = [place.partition(":") for place in (bootstrap, other)]
    app = application(
        "bank",
        protocol=[ProtocolConfig(name="headrace", host=host, port=int(port)) for host, _, port in places],
    )
    app.service(Bank(), scope="remote", version=version)
    app.start()
    for place in (bootstrap, other):
        consumer = application(f"web-{version}")
        proxy = consumer.reference(Bank, url=f"headrace://{place}", version=version, timeout=30_000)
        assert proxy.transfer(3) == 3


def test_a_token_is_wanted_here_too(provide: Callable[..., Bootstrap], bank: Callable[..., Bank]) -> None:
    provide(Ledger(), token="secret")
    with pytest.raises(RpcException, match="Invalid token!"):
        bank().transfer(1)
    with attach({"token": "secret"}):
        assert bank().transfer(1) == 1


def test_a_request_that_cannot_be_read_is_answered_and_passed(
    provide: Callable[..., Bootstrap], bank: Callable[..., Bank], bootstrap: str, version: str
) -> None:
    provide(Ledger())
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(f"services.com.acme.Bank.{version}", b"\x90\xff nonsense")
    producer.flush(10)
    assert bank().transfer(4) == 4


def test_a_cluster_that_is_not_there_is_one_sentence(application: Callable[..., Bootstrap]) -> None:
    app = application("x")
    with pytest.raises(RpcException, match=r"Failed to reach the cluster 127\.0\.0\.1:1"):
        app.reference(Bank, url="headrace://127.0.0.1:1?connect.timeout=500")


JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[BrokerThread]:
    users = " ".join(f'user_{name}="secret of {name}"' for name in ("bank", "web"))
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{JAAS} username="bank" password="secret of bank" {users};'
        ),
        "group.initial.rebalance.delay.ms": "0",
    }
    with BrokerThread(tmp_path / "data", settings) as running:
        yield running


def test_both_ends_log_in_with_the_settings_in_a_file(
    secured: BrokerThread, application: Callable[..., Bootstrap], version: str, tmp_path: Path
) -> None:
    def login(name: str, password: str) -> dict[str, str]:
        file = tmp_path / f"{name}.properties"
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={JAAS} username="{name}" password="{password}";\n'
        )
        return {"client.config": str(file)}

    def caller(parameters: dict[str, str]) -> Bank:
        given = {"timeout": 30_000, "retries": 0, "parameters": parameters}
        made: Bank = application(f"web-{version}").reference(
            Bank, url=f"headrace://{secured.bootstrap}", version=version, **given
        )
        return made

    host, _, port = secured.bootstrap.partition(":")
    way = ProtocolConfig(
        name="headrace", host=host, port=int(port), parameters=login("bank", "secret of bank")
    )
    app = application("bank", None, protocol=way)
    app.service(Bank(), scope="remote", version=version)
    app.start()
    assert caller(login("web", "secret of web")).transfer(5) == 5
    with pytest.raises(Exception, match=r"none\.properties: the file cannot be read"):
        caller({"client.config": str(tmp_path / "none.properties")}).transfer(5)
    with pytest.raises(Exception, match=r"(?i)authentication failed"):
        caller({**login("web", "a guess"), "connect.timeout": "5000"}).transfer(5)
