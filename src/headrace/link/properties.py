"""Java's properties syntax: keys and values, with escapes, comments and lines that go on in the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class MalformedProperties(ValueError):
    """What is wrong, as a sentence."""


class Entry(NamedTuple):
    value: str
    line: int
    """Its line in the file, from 1."""


def parse(text: str) -> dict[str, Entry]:
    """The settings in `text`, each with its line; the last value of a repeated key counts, as in Java."""
    result: dict[str, Entry] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        result[_unescape(key)] = Entry(_unescape(value), number)
    return result


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, continuations joined, with the number of the first."""
    pending: str | None = None
    first = 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(_BLANKS)
        if pending is None and (not line or line[0] in "#!"):
            continue
        if pending is None:
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        continues = backslashes % 2 == 1
        joined = (pending or "") + (line[:-1] if continues else line)
        if continues:
            pending = joined
        else:
            yield first, joined
            pending = None
    if pending:
        yield first, pending


def _split(line: str) -> tuple[str, str]:
    """Key and value: the key ends at the first unescaped blank, '=' or ':'."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char != "\\" or position == len(text):
            out.append(char)
            continue
        char = text[position]
        position += 1
        if char == "u":
            digits = text[position : position + 4]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise MalformedProperties(
                    f"Malformed \\u escape in {text!r}: four hexadecimal digits must follow."
                )
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(char, char))
    # Characters outside the basic plane are written as two \u escapes.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
