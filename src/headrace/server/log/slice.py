"""What a read returns: a stretch of a segment's file, not its bytes."""

from __future__ import annotations

from headrace.server.log.files import FileHandle


class LogSlice:
    """Whole batches in a file. It keeps the file open, so they stay readable whatever happens to the
    segment."""

    __slots__ = ("end_offset", "first_offset", "handle", "held", "position", "size")

    def __init__(
        self,
        handle: FileHandle | None,
        position: int,
        size: int,
        first_offset: int,
        end_offset: int,
        held: bytes | None = None,
    ) -> None:
        self.handle = handle
        """None when the slice is empty."""
        self.position = position
        self.size = size
        self.first_offset = first_offset
        """The base offset of the first batch, at or before the offset asked for."""
        self.end_offset = end_offset
        """An offset that no record in the slice reaches."""
        self.held = held
        """Its bytes, when they are still in memory."""

    def read(self, *, nowait: bool = False) -> bytes | bytearray:
        """All of its bytes. For tests and small reads; a sender reads `handle` in pieces."""
        if self.handle is None or not self.size:
            return b""
        return self.handle.read_at(self.size, self.position, nowait=nowait)
