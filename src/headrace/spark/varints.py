"""Finding the records of many batches at once: where each begins, and its variable-length numbers, as arrays.

Records follow each other by length, so their beginnings are found one after another; all else is read for every
record at the same time. Input has passed its checksum; what still does not fit raises IndexError or ValueError.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

_FIRST_LOOK, _NEXT_LOOK = 4, 64
"""After how many records to look for a run: soon at first and after a run, seldom where there was none."""

_RUN = 32
"""How many records of one length in a row make looking for a run worth its cost."""


def record_bodies(data: bytes, view: Bytes, position: int, end: int, count: int) -> list[Numbers]:
    """Where the bodies (after the length) of `count` records between `position` and `end` begin, in pieces.

    A run of records of the same length is found in one comparison: if the length that is written at a record's
    end is its own, the next record is as long as this one, and so on to the first that differs.
    """
    pieces: list[Numbers] = []
    singles: list[int] = []
    left, look = count, _FIRST_LOOK
    start = position
    while left:
        walked = min(look, left)
        left -= walked
        look = _NEXT_LOOK
        for _ in range(walked):
            start = position
            first = data[position]
            if first < 0x80:
                body = position + 1
                position = body + (first >> 1)
            else:
                second = data[position + 1]
                if second < 0x80:
                    body = position + 2
                    position = body + ((second << 6) | ((first & 0x7F) >> 1))
                else:
                    body, length = _long_length(data, position)
                    position = body + length
            singles.append(body)
        step = position - start
        if left >= _RUN and len(singles) > 1 and singles[-1] - singles[-2] == step:
            more = min(_run(view, start, step, body - start, end) - 1, left)
            if more > 0:
                pieces += (
                    np.array(singles, np.int64),
                    np.arange(body + step, body + (more + 1) * step, step, dtype=np.int64),
                )
                singles = []
                position += more * step
                left -= more
            if more >= _RUN:
                look = _FIRST_LOOK
    if singles:
        pieces.append(np.array(singles, np.int64))
    if position > end:
        raise ValueError(f"the records of a batch end {position - end} bytes after it")
    return pieces


def _run(view: Bytes, position: int, step: int, width: int, end: int) -> int:
    """How many records from `position` on have the length of the first."""
    same = view[position : end - width + 1 : step] == view[position]
    for index in range(1, width):
        same &= view[position + index : end - width + 1 + index : step] == view[position + index]
    different = int(np.argmin(same))
    return different if not same[different] else len(same)


def _long_length(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return position, result >> 1
        shift += 7
        if shift > 28:
            raise ValueError("a record's length is longer than it may be")


def read(view: Bytes, position: Numbers) -> tuple[Numbers, Numbers]:
    """A zigzag number at each position: (values, positions after them)."""
    byte = view[position]
    after = position + 1
    value = byte.astype(np.int64)
    more = byte > 0x7F
    if more.any():
        shift = 7
        value &= 0x7F
        rest = np.flatnonzero(more)
        while len(rest):
            if shift > 63:
                raise ValueError("a number in a record is longer than it may be")
            byte = view[after[rest]]
            value[rest] |= (byte & np.uint8(0x7F)).astype(np.int64) << shift
            after[rest] += 1
            rest = rest[byte > 0x7F]
            shift += 7
    return (value >> 1) & 0x7FFFFFFFFFFFFFFF ^ -(value & 1), after
