"""A .proto text as tokens, read one after the other; InvalidSchema says at which line and column something else was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from headrace.registry.errors import InvalidSchema
from headrace.registry.formats.base import MAX_DEPTH

_TOKENS = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[fF]?(?![\w.])|0[xX][0-9a-fA-F]+(?!\w)|\d+\w*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>[-+{}()\[\]<>;:,=./])""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPES = re.compile(
    rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SIMPLE = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def unquote(literal: str) -> bytes:
    def plain(found: re.Match[bytes]) -> bytes:
        octal, hexadecimal, short, long, other = found.groups()
        if octal is not None:
            return bytes([int(octal, 8) & 0xFF])
        if hexadecimal is not None:
            return bytes([int(hexadecimal, 16)])
        if short is not None or long is not None:
            return chr(int(short or long, 16)).encode("utf-8", "replace")
        return _SIMPLE.get(other, other)

    return _ESCAPES.sub(plain, literal[1:-1].encode())


class Tokens:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        position = 0
        for found in _TOKENS.finditer(text):
            if found.start() != position:
                break
            position = found.end()
            if found.lastgroup != "blank":
                self._tokens.append((found.lastgroup or "", found.group(), found.start()))
        if position != len(text):
            self.fail(f"unexpected {text[position : position + 10].split()[0]!r}", position)
        self._tokens.append(("end", "the end of the file", len(text)))
        self._place = 0
        self._depth = 0

    def fail(self, what: str, position: int | None = None) -> NoReturn:
        if position is None:
            position = self._tokens[self._place][2]
        line = self._text.count("\n", 0, position) + 1
        column = position - (self._text.rfind("\n", 0, position) + 1) + 1
        raise InvalidSchema(f"Syntax error at {line}:{column}: {what}")

    def peek(self) -> str:
        return self._tokens[self._place][1]

    def ahead(self, count: int) -> str:
        """The token that comes so many after the next one; the last one is the end of the file."""
        return self._tokens[min(self._place + count, len(self._tokens) - 1)][1]

    def kind(self) -> str:
        return self._tokens[self._place][0]

    def next(self) -> str:
        token = self._tokens[self._place][1]
        self._place += 1
        return token

    def back(self) -> None:
        """Undo one `next`."""
        self._place -= 1

    def take(self, token: str) -> bool:
        if self.peek() == token and self.kind() != "string":
            self._place += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            self.fail(f"expected {token!r} but was {self.peek()!r}")

    def name(self) -> str:
        if self.kind() != "name":
            self.fail(f"expected a name but was {self.peek()!r}")
        return self.next()

    def full_name(self) -> str:
        parts = ["."] if self.take(".") else []
        parts.append(self.name())
        while self.take("."):
            parts += [".", self.name()]
        return "".join(parts)

    def string(self) -> bytes:
        if self.kind() != "string":
            self.fail(f"expected a string but was {self.peek()!r}")
        value = b""
        while self.kind() == "string":
            try:
                value += unquote(self.peek())
            except (ValueError, OverflowError):
                self.fail(f"{self.peek()} names a character that Unicode does not have")
            self.next()
        return value

    def text(self) -> str:
        return self.string().decode("utf-8", "replace")

    def integer(self, least: int, most: int) -> int:
        negative = self.take("-")
        if self.kind() != "number":
            self.fail(f"expected a number but was {self.peek()!r}")
        literal = self.peek()
        try:
            value = int(literal, 8 if re.fullmatch(r"0[0-7]+", literal) else 0)
        except ValueError:
            self.fail(f"expected an integer but was {literal!r}")
        value = -value if negative else value
        if not least <= value <= most:
            self.fail(f"{value} is out of range")
        self._place += 1
        return value

    def block(self, statement: Callable[[], None]) -> None:
        self.expect("{")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail(f"it is nested more than {MAX_DEPTH} levels deep")
        while not self.take("}"):
            if not self.take(";"):
                statement()
        self._depth -= 1
        self.take(";")
