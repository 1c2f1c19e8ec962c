"""Every known setting acts, or gives the reason why not. A setting that acts is read somewhere: the test searches the source
for it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import headrace
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.group_table import GROUP_SETTINGS
from headrace.server.config.inert import INERT, INERT_IN_TOPICS, REFUSED, REFUSED_IN_TOPICS
from headrace.server.config.retired import _PREFIX_REMARKS, _REMARKS
from headrace.server.config.topic import TOPIC_SYNONYMS, TopicConfig
from headrace.server.config.topic_table import TOPIC_SETTINGS

SOURCE = Path(headrace.__file__).parent / "server"
ACCESSORS = {"value", "integer", "number", "boolean", "string", "list"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


def working_nodes(name: str, tree: ast.Module) -> Iterator[ast.AST]:
    """All of a module but checks between settings, which read without acting."""
    queue: list[ast.AST] = [tree]
    while queue:
        node = queue.pop()
        if (
            isinstance(node, ast.FunctionDef)
            and name.startswith("config/")
            and node.name.lstrip("_").startswith("check")
        ):
            continue
        yield node
        queue.extend(ast.iter_child_nodes(node))


def read_setting(node: ast.AST, accessors: set[str]) -> str | None:
    """`anything.integer("a.setting")` reads it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in accessors:
        first = node.args[0] if len(node.args) == 1 else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return first.value
    return None


class Program:
    """What the broker's source reads: settings by name, and the attributes that carry their values further."""

    def __init__(self) -> None:
        self.read: dict[str, list[str]] = {}
        """Settings read, and for each the fields that its values are handed over in; "" where it is used on the spot."""
        self.attributes: set[str] = set()
        """Attributes that the engines ask for."""
        self.looked_up: set[str] = set()
        """What they take out of a resource's own settings: `settings.get("a.setting")`."""
        for name, tree in trees():
            handed: dict[int, str] = {}
            for node in working_nodes(name, tree):
                if isinstance(node, ast.keyword) and node.arg is not None:
                    handed.update((id(inner), node.arg) for inner in ast.walk(node.value))
                setting = read_setting(node, ACCESSORS)
                if setting is not None:
                    self.read.setdefault(setting, []).append(handed.get(id(node), ""))
                if name.startswith("config/"):
                    continue
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    self.attributes.add(node.attr)
                if isinstance(node, ast.BinOp):  # A parameter that a sum is done with on the spot.
                    self.attributes.update(n.id for n in (node.left, node.right) if isinstance(n, ast.Name))
                setting = read_setting(node, {"get"})
                if setting is not None:
                    self.looked_up.add(setting)

    def acts_on(self, setting: str) -> bool:
        """Read, and where the value is handed over under a name, something asks for that name."""
        return any(
            not field or {field, f"_{field}"} & self.attributes for field in self.read.get(setting, ())
        )


@pytest.fixture(scope="module")
def program() -> Program:
    return Program()


BEHIND_TOPICS = {synonym.name: topic for topic, synonyms in TOPIC_SYNONYMS.items() for synonym in synonyms}


def topic_setting_acts(program: Program, name: str) -> bool:
    """The logs and replicas ask for its field, or the controller for the setting itself."""
    return name.replace(".", "_") in program.attributes or name in program.looked_up


@pytest.mark.parametrize("name", sorted(BROKER_SETTINGS))
def test_a_broker_setting_acts_or_says_why_not(program: Program, name: str) -> None:
    topic = BEHIND_TOPICS.get(name)
    acts = program.acts_on(name) or (topic is not None and topic_setting_acts(program, topic))
    if name in INERT:
        assert not acts, f"{name} is read: take it out of config/inert.py"
    elif not acts:
        assert name in REFUSED, f"nothing reads {name}: make it act, or give the reason in config/inert.py"


@pytest.mark.parametrize("name", sorted(TOPIC_SETTINGS))
def test_a_topic_setting_acts_or_says_why_not(program: Program, name: str) -> None:
    acts = topic_setting_acts(program, name)
    if name in INERT_IN_TOPICS:
        assert not acts, f"{name} is read: take it out of config/inert.py"
    elif not acts:
        assert name in REFUSED_IN_TOPICS, f"nothing reads {name}: make it act, or give the reason"


@pytest.mark.parametrize("name", sorted(GROUP_SETTINGS))
def test_a_group_setting_acts(program: Program, name: str) -> None:
    assert name in program.looked_up


def test_every_reason_belongs_to_a_setting() -> None:
    assert set(INERT) <= set(BROKER_SETTINGS)
    assert set(INERT_IN_TOPICS) | set(REFUSED_IN_TOPICS) <= set(TOPIC_SETTINGS)
    assert not set(INERT) & set(REFUSED)


def test_every_topic_setting_has_its_typed_field() -> None:
    assert {field.name.replace("_", ".") for field in fields(TopicConfig)} == set(TOPIC_SETTINGS)


def test_settings_without_effect_share_one_warning_that_gives_each_reason_once() -> None:
    given = {
        "num.network.threads": "16",
        "queued.max.requests": "9",
        "log.cleaner.threads": "2",
        "num.replica.fetchers": "1",
        "log.retention.hours": "1",
    }
    (warning,) = BrokerConfig.load(given).warnings
    assert warning == (
        "Settings without effect: num.network.threads, queued.max.requests (one event loop serves all connections; "
        "run more brokers (`--brokers N`) to use more cores); "
        "log.cleaner.threads (one cleaner process compacts one log at a time)."
    )


def test_a_setting_for_one_listener_that_counts_for_all_is_named() -> None:
    config = BrokerConfig.load({"listener.name.plaintext.max.connections": "5"})
    assert config.warnings == ()
    (warning,) = BrokerConfig.load({"listener.name.plaintext.socket.request.max.bytes": "5"}).warnings
    assert "socket.request.max.bytes counts for the whole broker, not for one listener" in warning


def test_the_search_takes_no_check_and_no_unused_field_for_an_action() -> None:
    checking = ast.parse(
        "class C:\n def _check(self): return self.integer('a')\n def use(self): return self.integer('b')"
    )
    found = {read_setting(node, ACCESSORS) for node in working_nodes("config/broker.py", checking)}
    assert "a" not in found
    assert "b" in found
    program = Program()
    program.read["handed.over"] = ["a_field_nobody_asks_for"]
    assert not program.acts_on("handed.over")
    assert not program.acts_on("never.read")


CLIENT_SETTINGS = {"acks", "bootstrap.servers"}
COMMANDS = {"headrace features", "headrace quotas", "--brokers N"}


def test_what_a_sentence_about_a_retired_setting_recommends_is_there_and_acts() -> None:
    acting = {*BROKER_SETTINGS, *TOPIC_SETTINGS} - {*INERT, *INERT_IN_TOPICS}
    for name, sentence in {**_REMARKS, **_PREFIX_REMARKS}.items():
        for recommended in re.findall("`([^`]+)`", sentence):
            assert recommended in acting | CLIENT_SETTINGS | COMMANDS, f"{name} {sentence}"


def test_no_setting_is_both_known_and_retired() -> None:
    assert not {name for name in BROKER_SETTINGS if name in _REMARKS}
