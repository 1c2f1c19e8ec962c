"""Strings as Java writes them: lengths count UTF-16 units, and each unit is up to three bytes of UTF-8.

A character beyond U+FFFF is therefore six bytes (two surrogates) and two units of length. ASCII, nearly all of
a call, takes a short way in both directions.
"""

from __future__ import annotations

import re

from headrace.services.hessian2.errors import Hessian2Error

CHUNK = 0x8000
_CONTINUATION = bytes(range(0x80, 0xC0))
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_FOUR_BYTES = re.compile(b"[\xf0-\xf7]")
_HIGH_SURROGATE = re.compile("[\ud800-\udbff]")


def encode_string(value: str) -> bytes:
    """The whole wire form of `value`, tag and length included."""
    if value.isascii():
        length = len(value)
        if length < 0x20:
            return _DIRECT[length] + value.encode("ascii")
        if length <= CHUNK:
            return _header(length) + value.encode("ascii")
    units = _ASTRAL.sub(_surrogates, value)
    if len(units) <= CHUNK:
        return _header(len(units)) + units.encode("utf-8", "surrogatepass")
    pieces = bytearray()
    start = 0
    while len(units) - start > CHUNK:
        end = start + CHUNK
        # Java's reader joins the pieces' units, but other readers decode each: never part a pair.
        if _HIGH_SURROGATE.match(units, end - 1):
            end -= 1
        pieces += b"R" + (end - start).to_bytes(2, "big")
        pieces += units[start:end].encode("utf-8", "surrogatepass")
        start = end
    pieces += _header(len(units) - start)
    pieces += units[start:].encode("utf-8", "surrogatepass")
    return bytes(pieces)


def measure(data: bytes, start: int, units: int) -> int:
    """Where `units` UTF-16 units that begin at `start` end."""
    position = start
    missing = units
    # As many bytes as units are missing can never be too many; count the units in them and go on from there.
    while missing:
        piece = data[position : position + missing]
        if len(piece) < missing:
            raise Hessian2Error(f"A string of {units} characters runs past the end of the body.")
        position += missing
        missing -= len(piece.translate(None, _CONTINUATION))
    if position == start:
        return start
    # The last character may go on; what follows it can look like its continuation, so its first byte decides.
    last = position - 1
    while last > start and data[last] & 0xC0 == 0x80:
        last -= 1
    lead = data[last]
    return last + (1 if lead < 0x80 else 2 if lead < 0xE0 else 3)


def decode_units(raw: bytes) -> str:
    """The text of `raw`, with the surrogate pairs put together again."""
    try:
        text = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Hessian2Error(f"A string holds bytes that are no UTF-8: {error.reason}.") from None
    if _FOUR_BYTES.search(raw):
        raise Hessian2Error("A string holds a four-byte character, where Java writes two surrogates.")
    if b"\xed" in raw:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def _header(length: int) -> bytes:
    if length < 0x20:
        return _DIRECT[length]
    if length < 0x400:
        return (0x3000 + length).to_bytes(2, "big")
    return b"S" + length.to_bytes(2, "big")


def _surrogates(match: re.Match[str]) -> str:
    code = ord(match.group()) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


_DIRECT = [bytes([length]) for length in range(0x20)]
