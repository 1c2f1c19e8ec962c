"""Help is there for every command, shows examples, and costs no more than it must."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from headrace.cli.kafka import TOOLS
from headrace.cli.tree import COMMANDS

HEAVY = (
    "confluent_kafka",
    "rich",
    "headrace.server",
    "headrace.wire",
    "asyncio",
    "uvloop",
    "pydantic",
)


def leaves() -> list[tuple[str, ...]]:
    from importlib import import_module

    found: list[tuple[str, ...]] = []
    for name, entry in COMMANDS.items():
        if entry.module is None:
            continue
        command = get_command(import_module(entry.module).app)
        commands = getattr(command, "commands", None)
        found += [(name, sub) for sub in commands] if commands else [(name,)]
    return found


@pytest.mark.parametrize("command", leaves(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(headrace_help, command):
    out = headrace_help(*command)
    assert out.startswith(f"Usage: headrace {' '.join(command)} ")
    assert f"\n    headrace {' '.join(command)}" in out or "| headrace" in out, "no example"


@pytest.mark.parametrize("tool", TOOLS)
def test_every_kafka_tool_explains_its_flags(headrace_help, tool):
    assert f"usage: kafka-{tool}.sh" in headrace_help("kafka", tool)


def test_the_tree_lists_every_command(headrace_help):
    out = headrace_help()
    for name, entry in COMMANDS.items():
        assert f"  {name} " in out
        assert entry.summary[:20] in out


def test_help_speaks_no_click(headrace_help):
    """Types have words for people, ranges too, and no summary is cut short."""
    for command in ((), ("groups",), ("topics", "create"), ("consume",), ("perf",)):
        out = headrace_help(*command)
        assert "<" not in out
        assert "x>=" not in out
        assert "..." not in out.replace("[ARGS]...", "")
    assert "-n, --max N" in headrace_help("consume")
    assert "[1 or more]" in headrace_help("consume")


@pytest.mark.parametrize(
    "command", [(), ("topics",), ("up",), ("groups", "describe"), ("kafka", "topics")], ids=str
)
def test_help_loads_nothing_heavy(command):
    """What makes help slow is importing clients, brokers and renderers that it does not need."""
    program = (
        "import sys, headrace.cli.frame as frame, headrace.cli as cli\n"
        f"frame.run(lambda: cli.dispatch({[*command, '--help']!r}))\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == "[]\n"


@pytest.fixture(scope="module")
def headrace_help():
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli", *arguments, "--help"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run
