"""Batches, records and index entries as the lines that Kafka's DumpLogSegments prints."""

from __future__ import annotations

import struct

from headrace.cli.view.dump.segment_file import Batch
from headrace.server.log.producers import ProducerEntry
from headrace.server.log.transaction_index import AbortedTransaction
from headrace.wire.batch import NO_SEQUENCE, BatchHeader, advance_sequence
from headrace.wire.records import Record

_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_VALUE = struct.Struct(">hi")
_CONTROL_TYPES = {0: "ABORT", 1: "COMMIT"}


def batch_line(batch: Batch) -> str:
    h = batch.header
    horizon = "OptionalLong.empty" if h.delete_horizon_ms is None else f"OptionalLong[{h.delete_horizon_ms}]"
    return (
        f"baseOffset: {h.base_offset} lastOffset: {h.last_offset} count: {h.records_count} "
        f"baseSequence: {h.base_sequence} lastSequence: {h.last_sequence} producerId: {h.producer_id} "
        f"producerEpoch: {h.producer_epoch} partitionLeaderEpoch: {h.leader_epoch} "
        f"isTransactional: {_bool(h.is_transactional)} isControl: {_bool(h.is_control)} deleteHorizonMs: {horizon} "
        f"position: {batch.position} {_time_type(h)}: {h.max_timestamp} size: {h.size} magic: {h.magic} "
        f"compresscodec: {h.codec.name.lower()} crc: {h.crc} isvalid: {_bool(batch.is_valid)}"
    )


def record_line(header: BatchHeader, record: Record) -> str:
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    names = ",".join(name for name, _ in record.headers)
    line = (
        f"offset: {record.offset} {_time_type(header)}: {record.timestamp} keySize: {key_size} "
        f"valueSize: {value_size} sequence: {_sequence(header, record)} headerKeys: [{names}]"
    )
    return line + _control(record) if header.is_control else line


def aborted_line(aborted: AbortedTransaction) -> str:
    return (
        f"version: 0 producerId: {aborted.producer_id} firstOffset: {aborted.first_offset} "
        f"lastOffset: {aborted.last_offset} lastStableOffset: {aborted.last_stable_offset}"
    )


def producer_line(entry: ProducerEntry) -> str:
    first = "OptionalLong.empty"
    if entry.transaction_first_offset >= 0:
        first = f"OptionalLong[{entry.transaction_first_offset}]"
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} coordinatorEpoch: {entry.coordinator_epoch} "
        f"currentTxnFirstOffset: {first} lastTimestamp: {entry.last_timestamp} "
    )
    if entry.batches:
        last = entry.batches[0]
        line += (
            f"firstSequence: {last.first_sequence} lastSequence: {last.last_sequence} lastOffset: {last.last_offset} "
            f"offsetDelta: {last.last_offset - last.first_offset} timestamp: {last.timestamp}"
        )
    return line


def _control(record: Record) -> str:
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        return ""
    _, kind = _CONTROL_KEY.unpack_from(record.key)
    if kind not in _CONTROL_TYPES or record.value is None or len(record.value) < _CONTROL_VALUE.size:
        return f" controlType: UNKNOWN({kind})"
    _, epoch = _CONTROL_VALUE.unpack_from(record.value)
    return f" endTxnMarker: {_CONTROL_TYPES[kind]} coordinatorEpoch: {epoch}"


def _sequence(header: BatchHeader, record: Record) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return advance_sequence(header.base_sequence, record.offset - header.base_offset)


def _time_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _bool(value: bool) -> str:
    return "true" if value else "false"
