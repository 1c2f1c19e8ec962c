"""The records of `__transaction_state` in Kafka's formats: version 0, and 1 with what KIP-890 added."""

from __future__ import annotations

import struct
from typing import NamedTuple

from headrace.server.transactions.metadata import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Status,
    TopicPartition,
    Transaction,
)
from headrace.wire.codec import WireError, decode, write_count, write_uvarint
from headrace.wire.schema import ALWAYS, Field, Message

_INT16 = struct.Struct(">h")
_INT64 = struct.Struct(">q")
_KEY_START = struct.Struct(">hh")
_VALUE_START = struct.Struct(">hqhib")
_TIMES = struct.Struct(">qq")
FLEXIBLE = 1
"""The version of a value that can have tagged fields."""


class _Key(Message):
    __slots__ = ("transactional_id",)
    FIELDS = (Field("transactional_id", "string", default=""),)

    def __init__(self, transactional_id: str = "") -> None:
        self.transactional_id = transactional_id


class _Partitions(Message):
    __slots__ = ("partition_ids", "topic")
    FLEXIBLE = 1
    FIELDS = (
        Field("topic", "string", default=""),
        Field("partition_ids", "int32", array=True),
    )

    def __init__(self, topic: str = "", partition_ids: list[int] | None = None) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is None else partition_ids


class _Value(Message):
    __slots__ = (
        "client_version",
        "next_producer_id",
        "partitions",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "started_ms",
        "status",
        "timeout_ms",
        "updated_ms",
    )
    FLEXIBLE = 1
    FIELDS = (
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

    def __init__(
        self,
        producer_id: int = NO_PRODUCER_ID,
        previous_producer_id: int = NO_PRODUCER_ID,
        next_producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_EPOCH,
        timeout_ms: int = 0,
        status: int = 0,
        partitions: list[_Partitions] | None = None,
        updated_ms: int = -1,
        started_ms: int = -1,
        client_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.timeout_ms = timeout_ms
        self.status = status
        self.partitions = partitions
        self.updated_ms = updated_ms
        self.started_ms = started_ms
        self.client_version = client_version


class TransactionRecord(NamedTuple):
    transactional_id: str
    transaction: Transaction | None
    """None is a tombstone: it removes the id."""


def encode_record(record: TransactionRecord, version: int = FLEXIBLE) -> tuple[bytes, bytearray | None]:
    """Written by hand: three of them go into the log for every transaction."""
    name = record.transactional_id.encode()
    key = _KEY_START.pack(0, len(name)) + name
    known = record.transaction
    if known is None:
        return key, None
    flexible = version >= FLEXIBLE
    out = bytearray(
        _VALUE_START.pack(
            version, known.producer_id, known.producer_epoch, known.timeout_ms, known.status.value
        )
    )
    if known.status is Status.EMPTY:
        out += b"\x00" if flexible else b"\xff\xff\xff\xff"
    else:
        _write_partitions(out, known.partitions, flexible)
    out += _TIMES.pack(known.updated_ms, known.started_ms)
    if flexible:
        tags = bytearray()
        count = 0
        for tag, layout, number, usual in (
            (0, _INT64, known.previous_producer_id, NO_PRODUCER_ID),
            (1, _INT64, known.next_producer_id, NO_PRODUCER_ID),
            (2, _INT16, known.client_version, 0),
        ):
            if number != usual:
                count += 1
                tags += bytes((tag, layout.size)) + layout.pack(number)
        out.append(count)
        out += tags
    return key, out


def _write_partitions(out: bytearray, partitions: frozenset[TopicPartition], flexible: bool) -> None:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    write_count(out, len(topics), flexible)
    for topic, numbers in topics.items():
        name = topic.encode()
        if flexible:
            write_uvarint(out, len(name) + 1)
        else:
            out += _INT16.pack(len(name))
        out += name
        write_count(out, len(numbers), flexible)
        out += struct.pack(f">{len(numbers)}i", *numbers)
        if flexible:
            out.append(0)


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
