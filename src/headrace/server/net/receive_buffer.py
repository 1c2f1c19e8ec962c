"""Where the bytes of a connection arrive, and frames are read in place.

A frame must lie in one piece, so a large one would be copied again and again while its buffer grows. Instead the buffer of a
frame beyond STEP is a range of addresses as long as the frame, asked of the kernel, which gives it memory page by page as
bytes are written there: a client that announces much and sends nothing costs nothing. How far the range may be used is
`paid`, which grows with the bytes that arrive.
"""

from __future__ import annotations

import mmap

SMALL = 16 * 1024
STEP = 1024 * 1024
"""The most that is paid for ahead of the bytes, and the largest buffer that is grown by copying it."""

_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)


class ReceiveBuffer:
    """Frames from `start` to `end`; then free space up to `paid`."""

    __slots__ = ("copied", "end", "paid", "start", "view")

    def __init__(self) -> None:
        self.view = memoryview(bytearray(SMALL))
        self.paid = SMALL
        self.start = self.end = 0
        self.copied = 0
        """Bytes that were moved, in all."""

    def make_contiguous(self, needed: int) -> None:
        """Move what is here to the front when the frame it begins does not fit behind it, or when that frees as much as it moves."""
        start, end = self.start, self.end
        held = end - start
        if held == 0:
            self.start = self.end = 0
        elif start and (start + needed > self.paid or (end == self.paid and start >= held)):
            self.view[:held] = bytes(self.view[start:end])
            self.copied += held
            self.start, self.end = 0, held

    def next_step(self, needed: int) -> int:
        """How far to pay next for a frame of `needed` bytes; unchanged if that is enough."""
        return max(self.paid, min(needed, 2 * self.paid, self.paid + STEP))

    def pay(self, paid: int, needed: int) -> None:
        """Use the buffer up to `paid`, on the way to a frame of `needed` bytes."""
        if paid > len(self.view):
            self._replace(memoryview(bytearray(paid) if paid <= STEP else _map(needed)))
        self.paid = paid

    def shrink(self) -> None:
        self._replace(memoryview(bytearray(SMALL)))
        self.paid = SMALL

    def _replace(self, view: memoryview) -> None:
        held = self.end - self.start
        view[:held] = self.view[self.start : self.end]
        self.copied += held
        self.view = view
        self.start, self.end = 0, held


def _map(size: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, size, flags=_PRIVATE)
    except (OSError, ValueError) as error:
        raise MemoryError(f"no room for a request of {size} bytes: {error}") from None
