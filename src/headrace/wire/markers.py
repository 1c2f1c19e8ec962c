"""Control records: the markers with which a coordinator ends a transaction in a partition."""

from __future__ import annotations

import struct
from typing import NamedTuple

from headrace.wire.batch import BatchHeader, Buffer
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.records import build_batch, decode_records

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0
_ABORT, _COMMIT = 0, 1


class EndTransactionMarker(NamedTuple):
    committed: bool
    coordinator_epoch: int


def build_end_transaction_marker(
    *, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool, timestamp: int
) -> bytearray:
    key = _KEY.pack(_VERSION, _COMMIT if committed else _ABORT)
    return build_batch(
        [(key, _VALUE.pack(_VERSION, coordinator_epoch))],
        timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        control=True,
    )


def read_end_transaction_marker(batch: Buffer, header: BatchHeader) -> EndTransactionMarker | None:
    """The marker in a control batch; None when compaction emptied it or it holds another kind of record."""
    if header.records_count == 0:
        return None
    record = decode_records(batch, header)[0]
    if record.key is None or len(record.key) < _KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A control record needs a key of version and type.")
    _, kind = _KEY.unpack_from(record.key)
    if kind not in (_ABORT, _COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A transaction marker needs a coordinator epoch.")
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndTransactionMarker(kind == _COMMIT, coordinator_epoch)
