"""What a coordinator asks of the partition that holds its state, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headrace.wire.errors import ErrorCode


class CoordinatorLog(Protocol):
    """The led partition. Every method raises KafkaError when it fails."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int:
        """The offset the next record will get."""
        ...

    @property
    def high_watermark(self) -> int:
        """Everything below it is on every in-sync replica."""
        ...

    @property
    def largest_batch(self) -> int:
        """In bytes; a larger one is refused."""
        ...

    def append(self, batch: bytearray) -> int:
        """Append one batch as leader, all in-sync replicas required; returns the offset of its last record."""
        ...

    def when_committed(self, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        """Call back once: NONE when the high watermark is beyond `offset`, an error if it never will be."""
        ...

    async def read(self, offset: int, max_bytes: int) -> bytes | bytearray | memoryview:
        """Whole batches from the one that holds `offset` on; empty only if no record is left before the end."""
        ...
