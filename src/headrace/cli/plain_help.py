"""Help in plain words: what an option takes, its range, and whole sentences in lists of commands.

typer prints click's names of types (`<int range>`, `[x>=0]`) and cuts a command's summary at the width of the terminal.
"""

from __future__ import annotations

from functools import partial
from typing import Any

_TAKES = {
    "int": "N",
    "int range": "N",
    "float": "NUMBER",
    "float range": "NUMBER",
    "str": "TEXT",
    "path": "PATH",
}


# typer keeps its copy of click private, so that signatures cannot name its classes.
def apply(command: Any) -> None:
    """To a command and to all below it."""
    for param in command.params:
        if param.param_type_name == "option" and param.metavar is None:
            param.metavar = _TAKES.get(param.type.name)
        if hasattr(param.type, "_describe_range"):
            param.type._describe_range = partial(_range, param.type.min, param.type.max)
    for inner in getattr(command, "commands", {}).values():
        inner.short_help = inner.short_help or _first_sentence(inner.help or "")
        apply(inner)


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{least} to {most}"
    return f"{least} or more" if most is None else f"at most {most}"


def _first_sentence(help: str) -> str:
    paragraph = " ".join(help.strip().partition("\n\n")[0].split())
    end = paragraph.find(". ")
    return paragraph if end < 0 else paragraph[: end + 1]
