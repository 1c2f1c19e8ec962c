"""`headrace context`, and how the other commands find the cluster that a context names."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from headrace.cli.tree import COMMANDS, app
from headrace.testing.broker import BrokerThread

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture
def run(headrace, home: Path):
    """`headrace …` with contexts of its own, and no cluster in the environment unless a test names one."""

    def go(*arguments: object, env: dict[str, str] | None = None):
        own = {"XDG_CONFIG_HOME": str(home), "HEADRACE_BOOTSTRAP": "", "HEADRACE_CONTEXT": ""}
        return headrace(*arguments, env={**own, **(env or {})})

    return go


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("other")) as running:
        yield running


@pytest.fixture
def two(run, bootstrap: str, other: BrokerThread) -> None:
    assert run("context", "add", "here", "--bootstrap-server", bootstrap).code == 0
    assert run("context", "add", "there", "-b", other.bootstrap, "--property", "client.id=me").code == 0


def cluster_of(ran) -> str:
    assert (ran.code, ran.err) == (0, "")
    return str(ran.json["cluster"])


def test_a_command_talks_to_the_cluster_that_its_context_names(run, two, bootstrap, other):
    def topics(*arguments: object, env: dict[str, str] | None = None) -> list[str]:
        ran = run(*arguments, env=env)
        assert ran.code == 0, ran.err
        return [each["topic"] for each in ran.json]

    assert run("topics", "create", "only-there", "--context", "there").code == 0
    listing = ("topics", "list", "--json")
    assert "only-there" in topics(*listing, "--context", "there")
    assert "only-there" in topics("--context", "there", *listing)
    assert "only-there" in topics("--context=there", *listing)
    assert "only-there" in topics(*listing, env={"HEADRACE_CONTEXT": "there"})
    assert "only-there" not in topics(*listing, "--context", "here")
    assert "only-there" not in topics(*listing, "--context", "here", env={"HEADRACE_CONTEXT": "there"})
    assert "only-there" not in topics(*listing, env={"HEADRACE_BOOTSTRAP": bootstrap})
    assert "only-there" in topics(
        *listing, env={"HEADRACE_BOOTSTRAP": bootstrap, "HEADRACE_CONTEXT": "there"}
    )
    assert "only-there" not in topics(*listing, "-b", bootstrap, "--context", "there")

    assert run("context", "use", "there").out == "Using context there.\n"
    assert "only-there" in topics(*listing)
    assert "only-there" not in topics(*listing, env={"HEADRACE_BOOTSTRAP": bootstrap})
    assert "only-there" not in topics(*listing, "-b", bootstrap)
    assert "only-there" not in topics(*listing, env={"HEADRACE_CONTEXT": "here"})
    assert run("kafka", "topics", "--list").lines == ["only-there"]
    assert "only-there" not in run("--context", "here", "kafka", "topics", "--list").lines


def test_a_tutorial_of_zookeeper_times_means_this_machine_and_no_context(run, two):
    assert run("context", "use", "there").code == 0
    ran = run("kafka", "topics", "--zookeeper", "localhost:2181", "--list")
    assert "Going on with the broker at 127.0.0.1:9092." in ran.err


def test_a_context_brings_its_client_settings_and_a_file_wins_over_them(run, bootstrap, tmp_path):
    run("context", "add", "c", "-b", bootstrap, "--property", "security.protocol=SASL_PLAINTEXT",
        "--property", "sasl.mechanism=PLAIN", "--property", "sasl.jaas.config=com.acme.PlainLoginModule required "
        'username="ann" password="x";')  # fmt: skip
    refused = run("topics", "list", "--context", "c")
    assert refused.code != 0
    assert "the context 'c'" in refused.err
    plain = tmp_path / "plain.properties"
    plain.write_text("security.protocol=PLAINTEXT\n")
    assert run("topics", "list", "--context", "c", "--command-config", plain).code == 0


def test_contexts_are_listed_shown_renamed_and_removed(run, two, home, bootstrap, other):
    assert run("context", "use", "there").code == 0
    lines = run("context", "list").lines
    assert lines[0].split() == ["NAME", "BOOTSTRAP", "SERVERS", "SECURITY"]
    assert lines[1].split() == ["here", bootstrap, "PLAINTEXT"]
    assert lines[2].split() == ["*", "there", other.bootstrap, "PLAINTEXT"]
    assert [(each["name"], each["in_use"]) for each in run("context", "list", "--json").json] == [
        ("here", False),
        ("there", True),
    ]
    assert run("context", "rename", "there", "yonder").out == "Renamed context there to yonder.\n"
    assert run("context", "show", "--json").json == {
        "name": "yonder",
        "in_use": True,
        "properties": {"bootstrap.servers": other.bootstrap, "client.id": "me"},
    }
    assert run("context", "remove", "yonder").out == "Removed context yonder, which was in use.\n"
    assert [each["name"] for each in run("context", "list", "--json").json] == ["here"]
    assert run("context", "show").err == (
        "headrace: No context is in use; name one, or choose one with 'headrace context use NAME'.\n"
    )
    assert stat.S_IMODE((home / "headrace" / "contexts.toml").stat().st_mode) == 0o600


def test_settings_come_from_a_file_with_its_paths_made_absolute_and_its_secrets_hidden(run, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=h:9093\nsecurity.protocol=SASL_SSL\nssl.truststore.location=ca.pem\n"
        "sasl.password=s3cret\n"
    )
    added = run("context", "add", "prod", "--config", file, "--property", "client.id=me", "--use")
    assert (added.code, added.out) == (0, "Added context prod and using it from now on.\n")
    shown = run("context", "show", "prod")
    assert "s3cret" not in shown.out
    properties = run("context", "show", "--json").json["properties"]
    assert properties == {
        "bootstrap.servers": "h:9093",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(Path.cwd() / "ca.pem"),
        "sasl.password": "********",
        "client.id": "me",
    }
    assert run("context", "use", "--none").out == "Using no context.\n"
    assert run("context", "show").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("add", "x"), 2, "A context needs brokers: give --bootstrap-server HOST:PORT."),
        (("add", "x", "-b", "nowhere"), 2, "--bootstrap-server takes HOST:PORT"),
        (("add", "a b", "-b", NOWHERE), 1, "A context is named with letters, digits"),
        (("add", "here", "-b", NOWHERE), 1, "There is a context 'here' already"),
        (("add", "x", "-b", NOWHERE, "--property", "oops"), 2, "--property takes key=value, not 'oops'."),
        (
            ("add", "x", "-b", NOWHERE, "--property", "ssl.truststore.location=/t.jks"),
            1,
            "/t.jks is JKS, which only Java reads; convert it with",
        ),
        (("add", "x", "-b", NOWHERE, "--config", "/none"), 1, "/none"),
        (("use", "hree"), 1, "There is no context 'hree'. Did you mean 'here'?"),
        (("use",), 2, "Name the context to use, or give --none."),
        (("show", "x"), 1, "There is no context 'x'."),
        (("rename", "here", "there"), 1, "There is a context 'there' already"),
        (("rename", "x", "y"), 1, "There is no context 'x'."),
        (("remove", "x"), 1, "There is no context 'x'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_makes_no_sense_is_said_in_one_sentence(run, two, arguments, code, sentence):
    ran = run("context", *arguments)
    assert ran.code == code
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_context_that_is_not_there_stops_every_command_but_not_one_with_brokers_of_its_own(run, bootstrap):
    for ran in (
        run("topics", "list", "--context", "prod"),
        run("topics", "list", env={"HEADRACE_CONTEXT": "prod"}),
        run("kafka", "topics", "--list", env={"HEADRACE_CONTEXT": "prod"}),
    ):
        assert ran.code != 0
        assert "There is no context 'prod'." in ran.err
    assert run("topics", "list", "-b", bootstrap, env={"HEADRACE_CONTEXT": "prod"}).code == 0


def test_a_context_may_be_replaced(run, two):
    assert run("context", "add", "here", "-b", NOWHERE, "--replace").code == 0
    assert run("context", "list", "--json").json[0]["bootstrap_servers"] == NOWHERE


def test_a_file_edited_badly_is_named_but_stands_in_nobodys_way(run, home, bootstrap):
    file = home / "headrace" / "contexts.toml"
    file.parent.mkdir(parents=True)
    file.write_text("current = \n")
    ran = run("topics", "list")
    assert ran.code != 0
    assert str(file) in ran.err
    assert run("topics", "list", "-b", bootstrap).code == 0


def test_names_are_completed_and_used_for_completion(run, two, name):
    def complete(line: str) -> list[str]:
        words = line.split(" ")
        ran = run(
            env={"_HEADRACE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        )
        assert ran.err == ""
        return [line for line in ran.lines if line]

    assert complete("headrace cont") == ["context"]
    assert complete("headrace context use th") == ["there"]
    assert complete("headrace topics list --context ") == ["here", "there"]
    assert run("topics", "create", name, "--context", "there").code == 0
    assert complete(f"headrace topics describe --context there {name[:-1]}") == [name]
    assert complete(f"headrace topics describe --context here {name[:-1]}") == []


def commands_with_brokers(command, name: str):
    for inner in getattr(command, "commands", {}).values():
        yield from commands_with_brokers(inner, f"{name} {inner.name}")
    if any(each.envvar == "HEADRACE_BOOTSTRAP" for each in command.params):
        yield name, command


def test_every_command_that_takes_brokers_takes_a_context():
    tree = get_command(app)
    found = {}
    for name in (name for name, entry in COMMANDS.items() if entry.module is not None):
        _, command, _ = tree.resolve_command(typer.Context(tree), [name])
        found |= dict(commands_with_brokers(command, name))
    assert {"topics list", "produce", "pipeline run", "connect run", "dlq list"} <= found.keys()
    without = [
        name for name, each in found.items() if "--context" not in {o for p in each.params for o in p.opts}
    ]
    assert without == []


def test_adding_a_context_takes_none(run):
    assert "--context NAME" not in run("context", "add", "--help").out
    assert "--context NAME" in run("--help").out
