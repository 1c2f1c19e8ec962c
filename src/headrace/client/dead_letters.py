"""Dead letters: a record that failed for good, with the reason and where it came from, in ``<topic>.dlq``.

Key, value and headers stay as they were; five headers are added. Writing waits for the acknowledgement,
because the original counts as finished after it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError

from headrace.client.admin import Admin
from headrace.client.errors import BrokerError
from headrace.client.producer import Producer
from headrace.client.record import Headers, Record, RecordMetadata

SUFFIX = ".dlq"
OF_SHARE_GROUPS = "dlq."
"""Brokers write dead letters of share groups to topics whose names begin so (docs/share-groups.md)."""
PREFIX = "headrace.dlq."
_ADDED = (PREFIX, "__dlq.errors.")
REASON, ATTEMPT, TOPIC, PARTITION, OFFSET = (
    PREFIX + name for name in ("reason", "attempt", "topic", "partition", "offset")
)
_MAX_REASON = 2_000
_ROOM_FOR_HEADERS = 64 * 1024
# Compressed, because the original may have been: the broker counts the bytes that arrive.
FOR_ANY_SIZE: dict[str, object] = {"compression.type": "zstd", "max.request.size": 1_000_000_000}
"""Settings of a producer for what some topic has held; its limit is the broker's."""


def default_name(topic: str) -> str:
    return topic + SUFFIX


def is_for_letters(topic: str) -> bool:
    """By its name."""
    return topic.endswith(SUFFIX) or topic.startswith(OF_SHARE_GROUPS)


def headers_for(
    record: Record[Any, Any], error: BaseException, attempt: int
) -> list[tuple[str, bytes | None]]:
    reason = _reason(error)
    return [
        *own_headers(record.headers),
        (REASON, reason[:_MAX_REASON].encode("utf-8", "backslashreplace")),
        (ATTEMPT, str(attempt).encode()),
        (TOPIC, record.topic.encode()),
        (PARTITION, str(record.partition).encode()),
        (OFFSET, str(record.offset).encode()),
    ]


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # a broken __str__ must not keep the letter from being written
        text = ""
    return f"{name}: {text}" if text else name


def own_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """The headers the record had before it became a dead letter."""
    return [(name, value) for name, value in headers if not name.startswith(_ADDED)]


class DeadLetters:
    """Writes dead letters; makes their topic when it is first needed, as wide as the original.

    Whatever the original could hold must fit: a letter that cannot be written would hold up its partition for ever.
    """

    def __init__(self, connection: dict[str, object], name: Callable[[str], str] = default_name) -> None:
        self._connection = connection
        self._name = name
        self._producer: Producer[bytes, bytes] | None = None
        self._known: set[str] = set()
        self._preparing = threading.Lock()

    def send(self, record: Record[Any, Any], error: BaseException, attempt: int) -> Future[RecordMetadata]:
        """Safe to call from several threads."""
        topic = self._name(record.topic)
        with self._preparing:
            if topic not in self._known:
                self._create(topic, record.topic)
            if self._producer is None:
                self._producer = Producer({**self._connection, **FOR_ANY_SIZE}, linger_ms=0)
            producer = self._producer
        try:
            return producer.send(
                topic, record.raw_value, key=record.raw_key, headers=headers_for(record, error, attempt)
            )
        except BrokerError as problem:
            if problem.code == KafkaError._FATAL:
                self._renew(producer)
            raise

    def _renew(self, broken: Producer[bytes, bytes]) -> None:
        """An idempotent producer that has lost its place never sends again; the next letter gets another."""
        with self._preparing:
            if self._producer is broken:
                self._producer = None
        broken.abandon()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()

    def _create(self, topic: str, original: str) -> None:
        with Admin(self._connection) as admin:
            if topic not in admin.topics():
                partitions = len(admin.topic(original).partitions)
                limit = int(admin.topic_config(original).get("max.message.bytes") or 0) + _ROOM_FOR_HEADERS
                config = {"max.message.bytes": str(limit)}
                admin.create_topic(topic, partitions=partitions, config=config, exist_ok=True)
        self._known.add(topic)
