"""The slow path of an append: checks that a batch header alone cannot decide.

Taken when a topic wants record keys (compaction), its own timestamps or codec, or when a header looks out of
the ordinary. It returns the batch to store, the same buffer or a new one, or raises with one line per bad
record.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.server.log.config import LONG_MAX, LogConfig
from headrace.server.log.producers import AppendOrigin
from headrace.wire.batch import (
    DELETE_HORIZON,
    KNOWN_ATTRIBUTES,
    NO_TIMESTAMP,
    BatchHeader,
    set_max_timestamp,
)
from headrace.wire.compression import DEFAULT_LIMIT, Codec
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.raw_records import iterate_raw, plainly_keyed
from headrace.wire.records import BatchBuilder, Record, decode_records, read_payload


@dataclass(slots=True, frozen=True)
class RecordError:
    """What is wrong with one record of a batch, for the produce reply."""

    batch_index: int
    message: str


class RecordsRefused(KafkaError):
    """A batch refused because of some of its records."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


def needs_inspection(config: LogConfig, origin: AppendOrigin) -> bool:
    """Whether this topic's settings can ever send an ordinary batch down the slow path."""
    if config.log_append_time or config.target_codec is not None:
        return True
    # A coordinator's records have keys, and the time they are written.
    return origin is AppendOrigin.CLIENT and (
        config.compact or config.message_timestamp_before_max_ms != LONG_MAX
    )


def inspect_batch(
    batch: memoryview, header: BatchHeader, config: LogConfig, origin: AppendOrigin, now_ms: int
) -> memoryview:
    """Check one batch in full and bring it into the form the topic stores; `batch` may change in place."""
    if header.attributes & ~KNOWN_ATTRIBUTES:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"Batch attributes {header.attributes:#06x} are unknown.")
    codec = header.codec
    if header.is_control:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Clients may not write control records.")
    if origin is AppendOrigin.CLIENT and header.attributes & DELETE_HORIZON:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Clients may not set a batch's delete horizon.")
    if header.is_log_append_time:
        raise RecordsRefused(
            ErrorCode.INVALID_TIMESTAMP,
            "Producers may not set the timestamp type LogAppendTime; the broker does that.",
            [RecordError(0, "The batch has timestamp type LogAppendTime.")],
        )
    limit = max(DEFAULT_LIMIT, 8 * config.max_message_bytes)
    if config.compact and origin is AppendOrigin.CLIENT:
        _check_keys(batch, header, limit)
    if not config.log_append_time:
        _check_timestamps(batch, header, config, now_ms, limit)
    target = config.target_codec
    if target is not None and target != codec:
        return _recompress(batch, header, target, config, now_ms, limit)
    if config.log_append_time:
        set_max_timestamp(batch, now_ms, log_append_time=True)
    return batch


def _check_keys(batch: memoryview, header: BatchHeader, limit: int) -> None:
    payload = read_payload(batch, header, limit)
    if plainly_keyed(payload, header.records_count):
        return
    without_key = []
    for index, raw in enumerate(iterate_raw(payload, header.records_count)):
        _, _, _, offset_delta, _, key_length, _, _, _ = raw
        if offset_delta != index:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"Record {index} of the batch has offset delta {offset_delta}."
            )
        if key_length < 0:
            without_key.append(RecordError(index, "A compacted topic takes no record without a key."))
    if without_key:
        raise RecordsRefused(
            ErrorCode.INVALID_RECORD,
            f"{len(without_key)} of {header.records_count} records have no key, which a compacted topic "
            f"needs.",
            without_key,
        )


def _check_timestamps(
    batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int, limit: int
) -> None:
    before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    if before == LONG_MAX and header.max_timestamp - now_ms <= after:
        return
    bad = [
        RecordError(index, f"Timestamp {record.timestamp} is outside {now_ms - before} … {now_ms + after}.")
        for index, record in enumerate(decode_records(batch, header, limit))
        if record.timestamp != NO_TIMESTAMP
        and (now_ms - record.timestamp > before or record.timestamp - now_ms > after)
    ]
    if not bad and header.max_timestamp - now_ms > after:
        bad = [RecordError(0, f"The batch's largest timestamp {header.max_timestamp} is too far ahead.")]
    if bad:
        raise RecordsRefused(
            ErrorCode.INVALID_TIMESTAMP,
            f"{len(bad)} of {header.records_count} records have timestamps outside what the topic takes.",
            bad,
        )


def _recompress(
    batch: memoryview, header: BatchHeader, target: Codec, config: LogConfig, now_ms: int, limit: int
) -> memoryview:
    records: list[Record] = decode_records(batch, header, limit)
    builder = BatchBuilder(
        codec=target,
        level=config.compression_level(target),
        log_append_time=now_ms if config.log_append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return memoryview(builder.build())
