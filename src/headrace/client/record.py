"""Records as a consumer gets them and the acknowledgement a producer gets; plain values, no I/O.

A record keeps its bytes and decodes key and value when they are first asked for, so that one poison record
fails where it is handled and never stops the consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, NamedTuple, cast

import confluent_kafka
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from headrace.client.errors import DeserializationError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]
HeadersLike = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RecordMetadata(NamedTuple):
    """Where a record was written. With acks=0 the offset is not known: it is -1."""

    topic: str
    partition: int
    offset: int
    timestamp: int


_UNDECODED = object()


class Record(Generic[K, V]):
    """One consumed record. ``key`` and ``value`` are decoded on first use; None stays None (a tombstone)."""

    __slots__ = (
        "_key",
        "_key_deserializer",
        "_value",
        "_value_deserializer",
        "headers",
        "offset",
        "partition",
        "raw_key",
        "raw_value",
        "timestamp",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Headers = (),
        timestamp: int = -1,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.raw_key = key
        self.raw_value = value
        self.headers = headers
        self.timestamp = timestamp
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._key: object = _UNDECODED
        self._value: object = _UNDECODED

    @property
    def key(self) -> K | None:
        if self._key is _UNDECODED:
            self._key = self._decode("key", self.raw_key, self._key_deserializer)
        return cast("K | None", self._key)

    @property
    def value(self) -> V | None:
        if self._value is _UNDECODED:
            self._value = self._decode("value", self.raw_value, self._value_deserializer)
        return cast("V | None", self._value)

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def time(self) -> datetime | None:
        return None if self.timestamp < 0 else datetime.fromtimestamp(self.timestamp / 1000, UTC)

    def header(self, name: str) -> bytes | None:
        """The last header of that name, as Kafka's Headers.lastHeader."""
        for header_name, value in reversed(self.headers):
            if header_name == name:
                return value
        return None

    def moved(
        self, topic: str, partition: int, offset: int, timestamp: int, headers: Headers
    ) -> Record[K, V]:
        """The same key and value at another place."""
        return Record(
            topic,
            partition,
            offset,
            self.raw_key,
            self.raw_value,
            headers,
            timestamp,
            self._key_deserializer,
            self._value_deserializer,
        )

    def _decode(self, part: str, data: bytes | None, decode: Callable[[bytes], object] | None) -> object:
        if data is None or decode is None:
            return data
        try:
            return decode(data)
        except Exception as error:
            raise DeserializationError(f"the {part} of {self!s} cannot be decoded: {error}") from error

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"

    def __repr__(self) -> str:
        return f"<Record {self} key={self.raw_key!r} value={_shortened(self.raw_value)}>"


def from_message(
    message: Message,
    key_deserializer: Callable[[bytes], K] | None,
    value_deserializer: Callable[[bytes], V] | None,
) -> Record[K, V]:
    kind, timestamp = message.timestamp()
    headers = message.headers()
    # No casts: they are calls, and this runs for every record. A message without an error has all of these.
    return Record(
        message.topic(),  # type: ignore[arg-type]
        message.partition(),  # type: ignore[arg-type]
        message.offset(),  # type: ignore[arg-type]
        message.key(),
        message.value(),
        tuple(headers) if headers else (),  # type: ignore[arg-type]
        -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        key_deserializer,
        value_deserializer,
    )


def to_librdkafka(offsets: Mapping[TopicPartition, int | None]) -> list[confluent_kafka.TopicPartition]:
    return [
        confluent_kafka.TopicPartition(topic, number)
        if offset is None
        else confluent_kafka.TopicPartition(topic, number, offset)
        for (topic, number), offset in offsets.items()
    ]


def from_librdkafka(partitions: Iterable[confluent_kafka.TopicPartition]) -> dict[TopicPartition, int]:
    return {TopicPartition(each.topic, each.partition): each.offset for each in partitions}


def header_list(headers: HeadersLike | None) -> list[tuple[str, bytes | None]]:
    if headers is None:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]


def _shortened(data: bytes | None) -> str:
    return repr(data) if data is None or len(data) <= 60 else f"{data[:60]!r}… ({len(data)} bytes)"
