"""Looking after the dead letters of a topic: read them, send them back, drop them.

A log cannot lose a record in its middle, so what has been settled is remembered in the offsets of one
group: the committed offset is the first unsettled letter, and the commit's note lists those settled after
it. Boxes take turns to settle, so that none overwrites the note of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import confluent_kafka
from confluent_kafka import KafkaException

from headrace.client.admin import Admin
from headrace.client.config import Config, connection_settings, merged
from headrace.client.consumer import Consumer
from headrace.client.dead_letters import (
    ATTEMPT,
    FOR_ANY_SIZE,
    OFFSET,
    PARTITION,
    REASON,
    SUFFIX,
    TOPIC,
    default_name,
    own_headers,
)
from headrace.client.errors import ClientError, ConfigError, broker_error
from headrace.client.exclusive import exclusive
from headrace.client.once.ids import ID_HEADER
from headrace.client.producer import Producer
from headrace.client.record import Headers, Record, TopicPartition, to_librdkafka
from headrace.client.scan import scan
from headrace.client.spans import Spans

GROUP = "headrace.dlq"
_NOTE_LIMIT = 4_000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record set aside, where it lies now and where it came from."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    reason: str
    attempt: int
    origin: str
    origin_partition: int
    origin_offset: int
    settled: bool


@dataclass(slots=True)
class Settled:
    """The settled letters of one partition: all before ``first``, and some after it."""

    first: int = 0
    after: set[int] = field(default_factory=set)

    def __contains__(self, offset: int) -> bool:
        return offset < self.first or offset in self.after

    def add(self, offsets: Iterable[int], present: Iterable[int]) -> None:
        """Settle offsets; ``present`` are the offsets of the partition that hold a letter, in order."""
        self.after.update(offset for offset in offsets if offset >= self.first)
        for offset in present:
            if offset >= self.first:
                if offset not in self.after:
                    break
                self.first = offset + 1
        self.after = {offset for offset in self.after if offset >= self.first}

    def note(self) -> str:
        return str(Spans.of(self.after))

    @classmethod
    def from_commit(cls, offset: int, note: str | None) -> Settled:
        return cls(max(offset, 0), set(Spans.from_text(note or "").offsets()))


class NoteRoom:
    """Whether the note of a partition has room for one more settled letter, going through them in order.

    Asked before anything is done with a letter, since what cannot be remembered would be done again.
    """

    def __init__(self, settled: Settled) -> None:
        self._left = _NOTE_LIMIT - len(settled.note())
        self._all_before = True  # then it needs no note: the committed offset says it
        self._last = -2

    def has_place_for(self, offset: int) -> bool:
        if self._all_before:
            return True
        # A span is at most two numbers; one that goes on has been counted when it began.
        if offset - 1 != self._last:
            self._left -= 2 * (len(str(offset)) + 2)
        self._last = offset
        return self._left >= 0

    def passed(self, *, settled: bool) -> None:
        self._all_before = self._all_before and settled


class DeadLetterBox:
    """The dead letters in one topic, such as ``orders.dlq``.

    In a topic of another name every record must say why it was set aside: ordinary records are not for dropping.
    """

    def __init__(self, topic: str, config: Config = None, /, **settings: object) -> None:
        self.topic = topic
        self._connection = connection_settings(merged(config, settings))
        self._admin = Admin(self._connection)
        self._partitions = self._admin.partitions_of(topic)
        self._consumer: Consumer[bytes, bytes] = Consumer(
            {**self._connection, "group.id": GROUP, "enable.auto.commit": False}
        )
        self._settled = self._read_settled()

    def letters(self, *, settled: bool = False) -> Iterator[DeadLetter]:
        """The letters there are now, by partition and offset; ``settled`` ones only if asked for."""
        for partition in self._partitions:
            for record in self._read(partition):
                done = record.offset in self._settled[partition]
                if settled or not done:
                    yield _letter(record, done)

    def count(self) -> int:
        return sum(1 for _ in self.letters())

    def replay(
        self, chosen: Callable[[DeadLetter], bool] = lambda letter: True, *, to: str | None = None
    ) -> int:
        """Send the chosen unsettled letters to where they came from, or to another topic; returns how many.

        They keep their partition and go without the headers of a dead letter. Each has a ``headrace.id``,
        so that ``once`` recognises one that is replayed twice because this was interrupted.
        """
        sizes: dict[str, int] = {}
        with Producer[bytes, bytes]({**self._connection, **FOR_ANY_SIZE}) as producer:

            def send(letter: DeadLetter) -> None:
                target = to or letter.origin
                if target not in sizes:
                    sizes[target] = len(self._admin.topic(target).partitions)
                same_place = to is None and letter.origin_partition < sizes[target]
                producer.send_and_wait(
                    target,
                    letter.value,
                    key=letter.key,
                    partition=letter.origin_partition if same_place else None,
                    headers=_headers_for_replay(letter),
                )

            with self._alone():
                return self._settle(chosen, send)

    def drop(self, chosen: Callable[[DeadLetter], bool] = lambda letter: True) -> int:
        """Settle the chosen letters without sending them; what is settled at the beginning is deleted."""
        with self._alone():
            dropped = self._settle(chosen, lambda letter: None)
        firsts = {partition: self._settled[partition].first for partition in self._partitions}
        starts = self._admin.offsets("earliest", self._partitions)
        deletable = {partition: first for partition, first in firsts.items() if first > starts[partition]}
        if deletable:
            self._admin.delete_records(deletable)
        return dropped

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other box settles letters meanwhile; what others have settled before is known."""
        with exclusive(
            self._connection, f"{GROUP}.{self.topic}", self.topic, f"settling letters of {self.topic}"
        ):
            self._settled = self._read_settled()
            yield

    def _settle(self, chosen: Callable[[DeadLetter], bool], act: Callable[[DeadLetter], None]) -> int:
        """Act on each chosen letter and remember it at the end, also when acting on one of them fails."""
        count = 0
        for partition in self._partitions:
            records = list(self._read(partition))
            done: list[int] = []
            room = NoteRoom(self._settled[partition])
            try:
                for record in records:
                    if record.offset in self._settled[partition]:
                        room.passed(settled=True)
                        continue
                    letter = _letter(record, settled=False)
                    wanted = chosen(letter)
                    if wanted:
                        if not room.has_place_for(letter.offset):
                            raise ClientError(
                                f"too many scattered letters of {partition} are settled to remember them all: "
                                f"settle those from offset {self._settled[partition].first} on first"
                            )
                        act(letter)
                        done.append(letter.offset)
                    room.passed(settled=wanted)
            finally:
                if done:
                    self._settled[partition].add(done, [record.offset for record in records])
                    self._keep_settled(partition)
                    count += len(done)
        return count

    def _read(self, partition: TopicPartition) -> Iterator[Record[bytes, bytes]]:
        for record in scan(self._connection, {partition: None}):
            if not self.topic.endswith(SUFFIX) and record.header(REASON) is None:
                raise ClientError(
                    f"{self.topic} is no dead-letter topic: its record {record.partition}:{record.offset} has no "
                    f"header {REASON}; dead letters from {self.topic} would be in {default_name(self.topic)}"
                )
            yield record

    def _read_settled(self) -> dict[TopicPartition, Settled]:
        try:
            found = self._consumer.librdkafka.committed(
                to_librdkafka(dict.fromkeys(self._partitions)), timeout=self._consumer.settings.api_timeout
            )
        except KafkaException as error:
            raise broker_error(error, f"reading what is settled in {self.topic}") from error
        return {
            TopicPartition(each.topic, each.partition): Settled.from_commit(each.offset, each.metadata)
            for each in found
        }

    def _keep_settled(self, partition: TopicPartition) -> None:
        settled = self._settled[partition]
        place = confluent_kafka.TopicPartition(*partition, settled.first, metadata=settled.note())
        try:
            self._consumer.librdkafka.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:
            raise broker_error(error, f"remembering what is settled in {partition}") from error


def _letter(record: Record[bytes, bytes], settled: bool) -> DeadLetter:
    def text(name: str, default: str) -> str:
        value = record.header(name)
        return default if value is None else value.decode("utf-8", "replace")

    def number(name: str, default: int) -> int:
        value = text(name, "")
        return int(value) if value.isdigit() else default

    return DeadLetter(
        record.partition,
        record.offset,
        record.raw_key,
        record.raw_value,
        record.headers,
        record.timestamp,
        text(REASON, "unknown"),
        number(ATTEMPT, 0),
        text(TOPIC, record.topic.removesuffix(SUFFIX)),
        number(PARTITION, record.partition),
        number(OFFSET, -1),
        settled,
    )


def _headers_for_replay(letter: DeadLetter) -> list[tuple[str, bytes | None]]:
    headers = own_headers(letter.headers)
    if not any(name == ID_HEADER for name, _ in headers):
        identity = f"{letter.origin}-{letter.origin_partition}-{letter.origin_offset}"
        headers.append((ID_HEADER, identity.encode()))
    return headers


def parse_places(texts: Iterable[str]) -> Callable[[DeadLetter], bool]:
    """A choice of letters from places like ``0:17`` or ``0:17-25`` (partition:offset)."""
    spans: list[tuple[int, int, int]] = []
    for text in texts:
        partition, colon, offsets = text.partition(":")
        low, dash, high = offsets.partition("-")
        parts = (partition, low, high if dash else low)
        if not colon or not all(part.isdigit() for part in parts):
            raise ConfigError(
                f"{text!r} is no place: write PARTITION:OFFSET or PARTITION:FIRST-LAST, as in 0:17"
            )
        spans.append((int(parts[0]), int(parts[1]), int(parts[2])))
    return lambda letter: any(
        letter.partition == partition and low <= letter.offset <= high for partition, low, high in spans
    )
