"""Every `headrace` command that README, docs and examples print exists, with the options they give it."""

from __future__ import annotations

import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from headrace.cli.kafka import TOOLS
from headrace.cli.tree import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]

_FENCED = re.compile(r"^```[a-z]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`(headrace [^`]+)`")
_ENDS = {"|", "||", "&&", ";", ">", ">>", "<", "&", "2>&1"}
_COMMON = {"--help", "-h", "--version", "--context", "--install-completion", "--show-completion"}


def printed(text: str) -> list[str]:
    """What stands in inline code, and at the start of lines in blocks (after a prompt, a pipe or environment variables)."""
    found = _INLINE.findall(_FENCED.sub("", text).replace(r"\|", "|"))
    for block in _FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"\s(?:\||&&)\s", line):
                command = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(headrace .*)", part)
                if command:
                    found.append(command[1])
    return found


@cache
def command_of(name: str) -> Any:
    module = COMMANDS[name].module
    assert module is not None
    return get_command(import_module(module).app)


def wrong_with(line: str) -> str | None:
    """Why a command line cannot be meant as it stands; None when it can."""
    try:
        words = shlex.split(line.partition(" #")[0])[1:]
    except ValueError:
        return None  # a fragment, such as one that shows an apostrophe
    ends = [place for place, word in enumerate(words) if word in _ENDS]
    words = words[: ends[0]] if ends else words
    while words and words[0].startswith("-"):
        if words[0].partition("=")[0] not in _COMMON:
            return f"{words[0]} is no option of headrace"
        words = words[2:] if words[0] == "--context" else words[1:]
    if not words or not re.fullmatch(r"[a-z][a-z-]*", words[0]):
        return None  # a sentence about the program, `headrace COMMAND`, `headrace …`
    if words[0] not in COMMANDS:
        return f"there is no command {words[0]}"
    if words[0] == "kafka":
        return None if len(words) == 1 or words[1] in TOOLS else f"there is no tool {words[1]}"
    command, given = command_of(words[0]), words[1:]
    subcommands = getattr(command, "commands", None)
    if subcommands and given and re.fullmatch(r"[a-z][a-z-]*", given[0]):
        if given[0] not in subcommands:
            return f"{words[0]} has no command {given[0]}"
        command, given = subcommands[given[0]], given[1:]
    if getattr(command, "commands", None):
        return None
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | _COMMON
    for word in given:
        name = word.partition("=")[0]
        if re.fullmatch(r"--[a-z][a-z-]*", name) and name not in options:
            return f"{' '.join(words[:2])} has no option {name}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_printed_commands_exist(page: Path) -> None:
    mistakes = [f"{line}: {wrong}" for line in printed(page.read_text()) if (wrong := wrong_with(line))]
    assert mistakes == []


def test_a_wrong_command_would_be_found() -> None:
    assert wrong_with("headrace topcis list") == "there is no command topcis"
    assert wrong_with("headrace topics lst") == "topics has no command lst"
    assert wrong_with("headrace topics list --jsn") == "topics list has no option --jsn"
    assert wrong_with("headrace consume a --from-beginning | jq --raw-output .") is None
