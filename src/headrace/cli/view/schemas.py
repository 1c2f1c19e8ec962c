"""Schemas and what is wrong with them, for people."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator

_DESCRIPTION = re.compile(r"description: ?[\"'](.*?)[\"']?(?:, additionalInfo|\}$|'\}$)", re.DOTALL)


def pretty(text: str, kind: str) -> str:
    """The text with a line for each thing."""
    if kind == "PROTOBUF":
        return text.rstrip("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def diff(old: str, new: str, kind: str, old_name: str, new_name: str) -> list[str]:
    """The lines that differ, with some around them; empty when nothing does."""
    lines = difflib.unified_diff(
        pretty(old, kind).splitlines(), pretty(new, kind).splitlines(), old_name, new_name, lineterm="", n=2
    )
    return list(lines)


def reasons(messages: Iterable[str]) -> Iterator[str]:
    """What keeps a schema from being compatible, a sentence each; what only repeats the schema is left out."""
    for message in messages:
        if message.startswith(("{oldSchema", "{validateFields")):
            continue
        found = _DESCRIPTION.search(message)
        yield message if found is None else found[1].rstrip("'\"}")
