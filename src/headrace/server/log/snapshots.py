"""Snapshots of producer state, `<offset>.snapshot` in Kafka's format: what was known just before that
offset."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from crc32c import crc32c

from headrace.server.log.files import Files
from headrace.server.log.producers import BatchMetadata, ProducerEntry
from headrace.wire.batch import MAX_SEQUENCE

SUFFIX = ".snapshot"
_HEAD = struct.Struct(">hIi")
_ENTRIES_START = 6
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1


def snapshot_path(directory: str, offset: int) -> str:
    return os.path.join(directory, f"{offset:020d}{SUFFIX}")


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    rows = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        rows.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_offset,
                last.last_offset - last.first_offset if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
    out = bytearray(_HEAD.pack(_VERSION, 0, len(rows)))
    out += b"".join(rows)
    struct.pack_into(">I", out, 2, crc32c(memoryview(out)[_ENTRIES_START:]))
    return bytes(out)


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """ValueError when the snapshot is damaged; the caller falls back to an older one."""
    if len(data) < _HEAD.size:
        raise ValueError("the snapshot is cut short")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"the snapshot has unknown version {version}")
    if crc32c(memoryview(data)[_ENTRIES_START:]) != crc:
        raise ValueError("the snapshot's checksum is wrong")
    if count < 0 or len(data) != _HEAD.size + count * _ENTRY.size:
        raise ValueError("the snapshot's length does not fit its count")
    entries = []
    for row in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, first_offset = row
        entry = ProducerEntry(producer_id, epoch, coordinator, timestamp, first_offset)
        if last_offset >= 0:
            first_sequence = (last_sequence - delta) & MAX_SEQUENCE if last_sequence >= 0 else last_sequence
            entry.batches.append(
                BatchMetadata(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
            )
        entries.append(entry)
    return entries


def read_snapshot(files: Files, path: str) -> list[ProducerEntry]:
    return decode_snapshot(files.read_whole(path))
