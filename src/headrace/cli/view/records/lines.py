"""Lines from a terminal, pipe or file, as bytes, with a chance to do other work while none arrives."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator

_PIECE = 1 << 16


def read_lines(descriptor: int, while_waiting: Callable[[], object]) -> Iterator[bytes]:
    """Every line without its ending (\\n or \\r\\n); a last line without an ending counts too."""
    held = bytearray()
    while True:
        while not select.select([descriptor], [], [], 0.1)[0]:
            while_waiting()
        piece = os.read(descriptor, _PIECE)
        if not piece:
            if held:
                yield bytes(held).removesuffix(b"\r")
            return
        first, newline, rest = piece.partition(b"\n")
        held += first
        if not newline:
            continue
        yield bytes(held).removesuffix(b"\r")
        *whole, last = rest.split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        held = bytearray(last)
