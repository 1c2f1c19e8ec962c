"""The records of `__share_group_state`, in Kafka's formats: a whole state, or what has changed since.

A key starts with two bytes that say which of the two it is, a value with two bytes that say which version it has.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from headrace.server.share.states import StateBatch
from headrace.wire.codec import WireError, decode, encode
from headrace.wire.schema import ALWAYS, ZERO_UUID, Field, Message

_INT16 = struct.Struct(">h")
SNAPSHOT, UPDATE = 0, 1
VERSION = 0
NOT_COUNTED = -1


class ShareKey(NamedTuple):
    """One group's share of one partition."""

    group_id: str
    topic_id: uuid.UUID
    partition: int


class Snapshot(NamedTuple):
    snapshot_epoch: int
    state_epoch: int
    """Grows when an administrator moves the start: writes under an older one are refused."""
    leader_epoch: int
    """Grows with the leader of the partition: an old leader's writes are refused."""
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]
    created_ms: int = 0
    written_ms: int = 0


class Update(NamedTuple):
    """-1 for a start offset or leader epoch that stays as it was."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


class ShareRecord(NamedTuple):
    key: ShareKey
    value: Snapshot | Update | None
    """None: the state is deleted."""
    kind: int = SNAPSHOT
    """What a tombstone removes."""


@dataclass(slots=True, eq=False, repr=False)
class _Key(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string"),
        Field("topic_id", "uuid", default=ZERO_UUID),
        Field("partition", "int32"),
    )
    group_id: str = ""
    topic_id: uuid.UUID = ZERO_UUID
    partition: int = 0


@dataclass(slots=True, eq=False, repr=False)
class _Batch(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64"),
        Field("last_offset", "int64"),
        Field("delivery_state", "int8"),
        Field("delivery_count", "int16"),
    )
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@dataclass(slots=True, eq=False, repr=False)
class _Snapshot(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("snapshot_epoch", "int32"),
        Field("state_epoch", "int32"),
        Field("leader_epoch", "int32"),
        Field("start_offset", "int64"),
        Field("complete_count", "int32", (0, ALWAYS), tag=0, default=NOT_COUNTED),
        Field("create_timestamp", "int64"),
        Field("write_timestamp", "int64"),
        Field("state_batches", "struct", array=True, struct=_Batch),
    )
    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    complete_count: int = NOT_COUNTED
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: list[_Batch] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class _Update(Message):
    FLEXIBLE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("snapshot_epoch", "int32"),
        Field("leader_epoch", "int32"),
        Field("start_offset", "int64"),
        Field("complete_count", "int32", (0, ALWAYS), tag=0, default=NOT_COUNTED),
        Field("state_batches", "struct", array=True, struct=_Batch),
    )
    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    complete_count: int = NOT_COUNTED
    state_batches: list[_Batch] = field(default_factory=list)


def encode_record(record: ShareRecord) -> tuple[bytes | bytearray, bytes | bytearray | None]:
    value = record.value
    kind = record.kind if value is None else SNAPSHOT if isinstance(value, Snapshot) else UPDATE
    key = encode(_Key(*record.key), VERSION, bytearray(_INT16.pack(kind)))
    if value is None:
        return key, None
    message: Message
    batches = [_Batch(*batch) for batch in value.batches]
    if isinstance(value, Snapshot):
        message = _Snapshot(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.complete_count,
            value.created_ms,
            value.written_ms,
            batches,
        )
    else:
        message = _Update(
            value.snapshot_epoch, value.leader_epoch, value.start_offset, value.complete_count, batches
        )
    return key, encode(message, VERSION, bytearray(_INT16.pack(VERSION)))


def decode_record(key: bytes, value: bytes | None) -> ShareRecord | None:
    """None for a kind of record, or a version of one, that is not known here."""
    if len(key) < 2 or (value is not None and len(value) < 2):
        raise WireError("a record of __share_group_state is shorter than its prefix")
    (kind,) = _INT16.unpack_from(key)
    if kind not in (SNAPSHOT, UPDATE):
        return None
    found, _ = decode(_Key, VERSION, key, 2)
    share_key = ShareKey(found.group_id, found.topic_id, found.partition)
    if value is None:
        return ShareRecord(share_key, None, kind)
    if _INT16.unpack_from(value)[0] != VERSION:
        return None
    if kind == SNAPSHOT:
        whole, _ = decode(_Snapshot, VERSION, value, 2)
        return ShareRecord(
            share_key,
            Snapshot(
                whole.snapshot_epoch,
                whole.state_epoch,
                whole.leader_epoch,
                whole.start_offset,
                whole.complete_count,
                _batches(whole.state_batches),
                whole.create_timestamp,
                whole.write_timestamp,
            ),
        )
    part, _ = decode(_Update, VERSION, value, 2)
    return ShareRecord(
        share_key,
        Update(
            part.snapshot_epoch,
            part.leader_epoch,
            part.start_offset,
            part.complete_count,
            _batches(part.state_batches),
        ),
        UPDATE,
    )


def _batches(stored: list[_Batch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in stored
    )
