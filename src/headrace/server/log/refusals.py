"""Errors for batches whose header alone is invalid: one sentence for each cause."""

from __future__ import annotations

from headrace.wire.batch import BatchHeader, check_counts, parse_header
from headrace.wire.errors import ErrorCode, KafkaError


def not_one_batch(name: str, records: memoryview) -> KafkaError:
    header = parse_header(records)
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"A produce request carries one batch per partition; this one for {name} has "
        f"{len(records) - header.size} bytes after its first.",
    )


def too_large(name: str, size: int, limit: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"A batch of {size} bytes for {name} is larger than max.message.bytes, {limit}.",
    )


def wrong_counts(header: BatchHeader) -> KafkaError:
    check_counts(header)
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"The base offset of a batch from a client must be 0, not {header.base_offset}: "
        "the broker assigns offsets.",
    )


def without_sequence(name: str, producer_id: int, sequence: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"Sequence {sequence} of producer {producer_id} for {name} is invalid: an idempotent batch "
        "has a sequence and an epoch of 0 or more.",
    )


def without_producer() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, "A transactional batch needs a producer id.")


def not_verified(name: str, producer_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{name} is not part of an open transaction of producer {producer_id}.",
    )


def out_of_order(name: str, base_offset: int, log_end_offset: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"A batch for {name} begins at offset {base_offset}, before {log_end_offset}, where the log continues.",
    )
