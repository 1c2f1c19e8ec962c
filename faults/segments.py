"""What the brokers' files hold, read when they have stopped: every batch of every replica."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headrace.wire.batch import BatchHeader, check_crc, iterate_batches
from headrace.wire.errors import KafkaError
from headrace.wire.records import decode_records


@dataclass(slots=True)
class Replica:
    """One partition on one broker."""

    batches: dict[int, bytes] = field(default_factory=dict)
    """By base offset, byte for byte."""
    records: dict[int, str] = field(default_factory=dict)
    """What the records say, by offset; markers of transactions are not records."""
    producer_epochs: dict[int, int] = field(default_factory=dict)
    """In which epoch of its producer a record was sent, by offset."""
    end: int = 0
    broken: list[str] = field(default_factory=list)


def read_replica(directory: Path) -> Replica:
    replica = Replica()
    for path in sorted(directory.glob("*.log")):
        for data, header, sound in _batches(path, replica):
            if header.base_offset < replica.end:
                replica.broken.append(f"{path}: offset {header.base_offset} comes after {replica.end}")
            replica.batches[header.base_offset] = data
            replica.end = header.next_offset
            if sound and not header.is_control:
                for record in decode_records(data, header):
                    value = bytes(record.value or b"")
                    replica.records[record.offset] = value.rstrip().decode(errors="replace")
                    replica.producer_epochs[record.offset] = header.producer_epoch
    return replica


def _batches(path: Path, replica: Replica) -> Iterator[tuple[bytes, BatchHeader, bool]]:
    whole = path.read_bytes()
    end = 0
    for position, header in iterate_batches(whole):
        end = position + header.size
        data, sound = whole[position:end], True
        try:
            check_crc(data, header)
        except KafkaError as error:
            replica.broken.append(f"{path}: {error.message}")
            sound = False
        yield data, header, sound
    if end != len(whole):
        replica.broken.append(f"{path}: {len(whole) - end} bytes after the last batch")
