"""The .log file of a segment: opening it, and walking the batches in it.

A walk stops at the first header that makes no sense: with an error or, where the caller asked for valid batches only,
without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from headrace.server.log.environment import Environment
from headrace.server.log.files import FileHandle, HandleSlot
from headrace.wire.batch import (
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    check_crc,
)
from headrace.wire.errors import ErrorCode, KafkaError

_SCAN_BYTES = 8192
_BULK_BYTES = 1024 * 1024


class Location(NamedTuple):
    """A batch in a segment."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    held: bytes | None = None
    """Its bytes, when they are still in memory."""


def segment_path(directory: str, base_offset: int, kind: str) -> str:
    return os.path.join(directory, f"{base_offset:020d}{kind}")


class SegmentFile:
    __slots__ = ("base_offset", "directory", "environment", "size", "slot", "suffix")

    def __init__(
        self, environment: Environment, directory: str, base_offset: int, suffix: str, size: int
    ) -> None:
        self.environment = environment
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        """Appended to the names of its files: "" in service, ".cleaned", ".swap" or ".deleted" otherwise."""
        self.size = size
        """Bytes of whole batches; the file may have more behind them for a moment."""
        self.slot = HandleSlot()

    def path(self, kind: str) -> str:
        return segment_path(self.directory, self.base_offset, kind) + self.suffix

    def handle(self, *, writable: bool = False) -> FileHandle:
        """The open .log file. A handle stays readable after the segment is removed."""
        handle = self.slot.handle
        if handle is None or (writable and not handle.writable):
            handle = self.environment.files.open(self.path(".log"), writable=writable)
            self.environment.pool.fill(self.slot, handle)
        handle.used = True
        return handle

    def scan(self, offset: int, position: int, nowait: bool) -> Location | None:
        """The first batch from `position` on whose last offset is not below `offset`."""
        end = self.size
        chunk: bytes | bytearray = b""
        chunk_start = chunk_end = position
        handle = self.handle()
        while position < end:
            if position + HEADER_SIZE > chunk_end:
                chunk_start = position
                chunk = handle.read_at(min(_SCAN_BYTES, end - position), position, nowait=nowait)
                chunk_end = position + len(chunk)
                if len(chunk) < HEADER_SIZE:
                    raise self._damaged(position)
            base, length, _, magic, _, _, last_delta, *_ = HEADER.unpack_from(chunk, position - chunk_start)
            if magic != MAGIC or length < HEADER_SIZE - LENGTH_OVERHEAD:
                raise self._damaged(position)
            if base + last_delta >= offset:
                return Location(position, length + LENGTH_OVERHEAD, base, base + last_delta)
            position += length + LENGTH_OVERHEAD
        return None

    def headers(self, position: int, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch from `position` on, without reading the records."""
        limit = self.size if end is None else min(end, self.size)
        handle = self.handle()
        chunk: bytes | bytearray = b""
        chunk_start = chunk_end = position
        while position < limit:
            if position + HEADER_SIZE > chunk_end:
                chunk_start = position
                chunk = handle.read_at(min(_SCAN_BYTES * 8, self.size - position), position)
                chunk_end = position + len(chunk)
                if len(chunk) < HEADER_SIZE:
                    raise self._damaged(position)
            header = BatchHeader._make(HEADER.unpack_from(chunk, position - chunk_start))
            if header.magic != MAGIC or header.length < HEADER_SIZE - LENGTH_OVERHEAD:
                raise self._damaged(position)
            yield position, header
            position += header.size

    def checked_batches(self, position: int, end: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Every whole batch with a valid checksum from `position` on; ends before the first that is not."""
        handle = self.handle()
        chunk = memoryview(b"")
        chunk_start = position
        while end - position >= HEADER_SIZE:
            if chunk_start + len(chunk) - position < HEADER_SIZE:
                chunk_start = position
                chunk = memoryview(handle.read_at(min(_BULK_BYTES, end - position), position))
                if len(chunk) < HEADER_SIZE:
                    return
            header = BatchHeader._make(HEADER.unpack_from(chunk, position - chunk_start))
            if (
                header.magic != MAGIC
                or header.length < HEADER_SIZE - LENGTH_OVERHEAD
                or header.size > end - position
                or header.last_offset_delta < 0
            ):
                return
            if position - chunk_start + header.size > len(chunk):
                chunk_start = position
                chunk = memoryview(
                    handle.read_at(max(header.size, min(_BULK_BYTES, end - position)), position)
                )
                if len(chunk) < header.size:
                    return
            start = position - chunk_start
            batch = chunk[start : start + header.size]
            try:
                check_crc(batch, header)
            except KafkaError:
                return
            yield position, header, batch
            position += header.size

    def read_batch(self, position: int, header: BatchHeader) -> bytes | bytearray:
        data = self.handle().read_at(header.size, position)
        if len(data) != header.size:
            raise self._damaged(position)
        return data

    def _damaged(self, position: int) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{self.path('.log')} is damaged at byte {position}; restart the broker after removing its "
            "clean-stop mark to recover the partition.",
        )
