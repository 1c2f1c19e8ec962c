"""The batches of a `.log` file, one at a time, however large the file is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from headrace.cli.failure import Failure
from headrace.wire.batch import HEADER, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, BatchHeader, compute_crc
from headrace.wire.errors import KafkaError
from headrace.wire.records import Record, decode_records

_LARGEST = 1 << 30  # a length above this is damage, not a batch


class Batch(NamedTuple):
    position: int
    header: BatchHeader
    data: bytes

    @property
    def is_valid(self) -> bool:
        return compute_crc(self.data) == self.header.crc

    def records(self) -> list[Record]:
        """Raises Failure when what is inside cannot be read."""
        try:
            return decode_records(self.data, self.header)
        except KafkaError as error:
            raise Failure(f"The batch at position {self.position} cannot be read: {error}") from None


class SegmentFile:
    """Iterating yields the whole batches; afterwards `trailing` says how many bytes behind them make no batch."""

    def __init__(self, path: Path, max_bytes: int | None = None) -> None:
        self.path = path
        self.base_offset = base_offset_of(path)
        self.size = path.stat().st_size if max_bytes is None else min(path.stat().st_size, max_bytes)
        self.trailing = 0

    def __iter__(self) -> Iterator[Batch]:
        with self.path.open("rb") as file:
            position = 0
            while (batch := read_batch(file, position, self.size)) is not None:
                yield batch
                position += batch.header.size
        self.trailing = self.size - position


def read_batch(file: BinaryIO, position: int, end: int) -> Batch | None:
    """The batch at a position; None when none lies there whole."""
    file.seek(position)
    head = file.read(min(HEADER_SIZE, end - position)) if end > position else b""
    if len(head) < HEADER_SIZE:
        return None
    header = BatchHeader._make(HEADER.unpack(head))
    if header.magic in (0, 1):
        raise Failure(
            f"The batch at position {position} has record format v{header.magic}, from before Kafka 0.11."
        )
    if header.magic != MAGIC or not HEADER_SIZE - LENGTH_OVERHEAD <= header.length <= _LARGEST:
        return None
    if position + header.size > end:
        return None
    rest = file.read(header.size - HEADER_SIZE)
    return Batch(position, header, head + rest) if len(rest) == header.size - HEADER_SIZE else None


def base_offset_of(path: Path) -> int:
    digits = path.name.split(".")[0]
    if not digits.isdigit():
        raise Failure(f"{path} is not named after an offset, as the files of a partition are.")
    return int(digits)
