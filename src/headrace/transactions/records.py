"""The records of `__transaction_state` in Kafka's formats: version 0, and 1 with what KIP-890 added."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from headrace.transactions.metadata import NO_EPOCH, NO_PRODUCER_ID, Status, Transaction
from headrace.wire.codec import WireError, decode, encode
from headrace.wire.schema import ALWAYS, Field, Message

_INT16 = struct.Struct(">h")
FLEXIBLE = 1
"""The version of a value that can have tagged fields."""


@dataclass(slots=True, eq=False, repr=False)
class _Key(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("transactional_id", "string", default=""),)
    transactional_id: str = ""


@dataclass(slots=True, eq=False, repr=False)
class _Partitions(Message):
    FLEXIBLE: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", default=""),
        Field("partition_ids", "int32", array=True),
    )
    topic: str = ""
    partition_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class _Value(Message):
    FLEXIBLE: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64"),
        Field("previous_producer_id", "int64", (1, ALWAYS), tag=0, default=NO_PRODUCER_ID),
        Field("next_producer_id", "int64", (1, ALWAYS), tag=1, default=NO_PRODUCER_ID),
        Field("producer_epoch", "int16"),
        Field("timeout_ms", "int32"),
        Field("status", "int8"),
        Field("partitions", "struct", array=True, nullable=(0, ALWAYS), struct=_Partitions),
        Field("updated_ms", "int64"),
        Field("started_ms", "int64"),
        Field("client_version", "int16", (1, ALWAYS), tag=2, default=0),
    )
    producer_id: int = NO_PRODUCER_ID
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    status: int = 0
    partitions: list[_Partitions] | None = None
    updated_ms: int = -1
    started_ms: int = -1
    client_version: int = 0


class TransactionRecord(NamedTuple):
    transactional_id: str
    transaction: Transaction | None
    """None forgets the id."""


def encode_record(record: TransactionRecord, version: int = FLEXIBLE) -> tuple[bytearray, bytearray | None]:
    key = encode(_Key(record.transactional_id), 0, bytearray(_INT16.pack(0)))
    known = record.transaction
    if known is None:
        return key, None
    partitions = None
    if known.status is not Status.EMPTY:
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(known.partitions):
            topics.setdefault(topic, []).append(partition)
        partitions = [_Partitions(topic, numbers) for topic, numbers in topics.items()]
    value = _Value(
        producer_id=known.producer_id,
        previous_producer_id=known.previous_producer_id,
        next_producer_id=known.next_producer_id,
        producer_epoch=known.producer_epoch,
        timeout_ms=known.timeout_ms,
        status=known.status,
        partitions=partitions,
        updated_ms=known.updated_ms,
        started_ms=known.started_ms,
        client_version=known.client_version,
    )
    return key, encode(value, version, bytearray(_INT16.pack(version)))


def decode_record(key: bytes, value: bytes | None) -> TransactionRecord | None:
    if len(key) < 2 or _INT16.unpack_from(key)[0] != 0:
        return None
    transactional_id = decode(_Key, 0, key, 2)[0].transactional_id
    if value is None:
        return TransactionRecord(transactional_id, None)
    (version,) = _INT16.unpack_from(value)
    if version not in (0, 1):
        raise WireError(f"a transaction of version {version}")
    found, _ = decode(_Value, version, value, 2)
    try:
        status = Status(found.status)
    except ValueError:
        return TransactionRecord(transactional_id, None)  # Dead: Kafka was about to forget it.
    partitions = frozenset(
        (each.topic, number) for each in found.partitions or () for number in each.partition_ids
    )
    return TransactionRecord(
        transactional_id,
        Transaction(
            transactional_id,
            found.producer_id,
            found.producer_epoch,
            found.timeout_ms,
            status,
            partitions,
            found.started_ms,
            found.updated_ms,
            found.previous_producer_id,
            found.next_producer_id,
            client_version=found.client_version,
        ),
    )
