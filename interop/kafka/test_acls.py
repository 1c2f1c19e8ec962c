"""ACLs by Kafka's own kafka-acls.sh, and beside it Headrace's: what one makes the other shows, in the same words."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from bench.provision import java
from bench.systems.kafka_protocol import KafkaProtocolSystem
from interop.kafka.conftest import SETTINGS
from interop.kafka.programs import finish

Acls = Callable[..., list[str]]

LOCKED = {
    **SETTINGS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def address(system: KafkaProtocolSystem, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with system.start(tmp_path_factory.mktemp("locked") / "data", LOCKED) as running:
        yield running.address


@pytest.fixture(scope="module")
def javas(address: str) -> Acls:
    def call(*arguments: str) -> list[str]:
        command = [*java("org.apache.kafka.tools.AclCommand"), "--bootstrap-server", address, *arguments]
        return finish(command).splitlines()

    return call


@pytest.fixture(scope="module")
def ours(address: str) -> Acls:
    def call(*arguments: str) -> list[str]:
        command = [sys.executable, "-m", "headrace.cli", "kafka", "acls", "--bootstrap-server", address]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=90, check=True)
        return done.stdout.splitlines()

    return call


PRODUCER = ("--allow-principal", "User:alice", "--producer", "--topic", "orders", "--idempotent")
CONSUMER = ("--allow-principal", "User:bob", "--consumer", "--topic", "ord", "--group", "g")


def test_both_tools_add_the_same_acls_and_show_them_in_the_same_words(javas: Acls, ours: Acls) -> None:
    for arguments in (PRODUCER, (*CONSUMER, "--resource-pattern-type", "prefixed")):
        assert sorted(javas("--add", *arguments)) == sorted(ours("--add", *arguments))
    listed = javas("--list")
    assert sorted(listed) == sorted(ours("--list"))
    assert sum("principal=User:alice" in line for line in listed) == 4
    matching = ("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert sorted(javas(*matching)) == sorted(ours(*matching))
    of_bob = ("--list", "--principal", "User:bob")
    assert sorted(javas(*of_bob)) == sorted(ours(*of_bob))


def test_what_one_tool_adds_the_other_removes(javas: Acls, ours: Acls) -> None:
    javas("--add", "--deny-principal", "User:eve", "--operation", "Read", "--topic", "mine")
    ours("--add", "--deny-principal", "User:eve", "--operation", "Read", "--topic", "yours")
    ours("--remove", "--force", "--topic", "mine")
    javas("--remove", "--force", "--topic", "yours")
    assert [line for line in javas("--list") if "User:eve" in line] == []
