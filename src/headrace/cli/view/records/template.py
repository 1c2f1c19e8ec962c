"""Records to text by a template: `%t %p %o %k %v\\n`, with the letters that kcat and rpk use.

A template is read once, into literal bytes and functions from a record to bytes; what it does not know is Misuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from headrace.cli.failure import Misuse
from headrace.cli.view.records.record import headers_of

Part = Callable[[Message], bytes]

_TOKEN = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def compiled(template: str) -> Callable[[Message], bytes]:
    """What turns a record into the bytes of a template."""
    parts: list[bytes | Part] = []
    position = 0
    for token in _TOKEN.finditer(template):
        parts.append(template[position : token.start()].encode())
        parts.append(_field(token[1], template) if token[1] is not None else _escape(token[2], template))
        position = token.end()
    parts.append(template[position:].encode())

    def show(message: Message) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(message) for part in parts)

    return show


def _field(letter: str, template: str) -> bytes | Part:
    if letter == "%":
        return b"%"
    if letter not in _FIELDS:
        raise Misuse(
            f"'%{letter}' in the format '{template}' is no field; there are {' '.join(f'%{each}' for each in _FIELDS)} and %%."
        )
    return _FIELDS[letter]


def _escape(escape: str, template: str) -> bytes:
    if escape.startswith("x") and len(escape) == 3:
        return bytes([int(escape[1:], 16)])
    if escape not in _ESCAPES:
        raise Misuse(
            f"'\\{escape}' in the format '{template}' is no escape; there are \\n \\t \\r \\0 \\\\ and \\xHH."
        )
    return _ESCAPES[escape]


def _number(number: int | None) -> bytes:
    return b"%d" % (-1 if number is None else number)


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _timestamp(message: Message) -> bytes:
    kind, milliseconds = message.timestamp()
    return b"-1" if kind == TIMESTAMP_NOT_AVAILABLE else b"%d" % milliseconds


def _headers(message: Message) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers_of(message)
    )


_FIELDS: Mapping[str, Part] = {
    "t": lambda message: (message.topic() or "").encode(),
    "p": lambda message: _number(message.partition()),
    "o": lambda message: _number(message.offset()),
    "k": lambda message: message.key() or b"",
    "K": lambda message: _size(message.key()),
    "v": lambda message: message.value() or b"",
    "V": lambda message: _size(message.value()),
    "s": lambda message: message.value() or b"",
    "S": lambda message: _size(message.value()),
    "T": _timestamp,
    "h": _headers,
}
