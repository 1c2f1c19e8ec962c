"""Dead letters of share groups: records that were refused or delivered too often, written to the topic that the group names.

A letter has Kafka's headers (`__dlq.errors.*`) and Headrace's, so that the tools of both know it. Key, value and headers of the
record come along where the group's settings say so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from headrace.clock import Clock
from headrace.server.cluster.auto_topic_creation import AutoTopicCreation
from headrace.server.cluster.decisions import create_topics
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.peers import Peers
from headrace.server.replica.partition import Partition
from headrace.server.replica.replicas import Replicas
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.retrying import Retries
from headrace.server.share.settings import ShareGroupSettings
from headrace.server.share.states import DeadReason, DeadRecords
from headrace.wire.batch import iterate_batches
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.records import BatchBuilder, Record, decode_records

log = logging.getLogger(__name__)

Header = tuple[str, bytes | None]

PATIENCE = 30.0
"""Seconds of trying; then the records are given up without a letter, and the log says which."""
PRODUCE_VERSION = 12
CREATE_TOPICS_VERSION = 7
READ_BYTES = 1 << 20
_RETRIES = Retries(
    frozenset(
        {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.LEADER_NOT_AVAILABLE,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.NOT_CONTROLLER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
    ),
    unreachable=ErrorCode.LEADER_NOT_AVAILABLE,
    first_pause=0.05,
    longest_pause=2.0,
    patience=PATIENCE,
)
REASONS = {
    DeadReason.REJECTED: "Rejected: a member of share group {} rejected the record",
    DeadReason.EXHAUSTED: "DeliveryCountExceeded: share group {} gave the record up",
}
"""For `headrace dlq`, which groups letters by what stands before the colon."""


class _Refused(Exception):
    """The group's settings or the topic's do not allow letters there."""


class _Letter(NamedTuple):
    offset: int
    dead: DeadRecords


class DeadLetterWriter:
    def __init__(
        self,
        cluster: ClusterNode,
        replicas: Replicas,
        peers: Peers,
        topics: AutoTopicCreation,
        settings: Callable[[str], ShareGroupSettings],
        disk: Executor,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._replicas = replicas
        self._peers = peers
        self._topics = topics
        self._settings = settings
        self._disk = disk
        self._clock = clock

    async def send(self, key: ShareKey, partition: Partition, dead: Sequence[DeadRecords]) -> None:
        """Returns when the letters are written, or when they cannot be, which the log says."""
        settings = self._settings(key.group_id)
        letters = [_Letter(offset, each) for each in dead for offset in range(each.first, each.last + 1)]
        records: dict[int, Record] = {}
        if settings.copy_records:
            loop = asyncio.get_running_loop()
            try:
                records = await loop.run_in_executor(self._disk, _read, partition, dead)
            except KafkaError as error:
                _give_up(key, partition, letters, error)
                return
            letters = [letter for letter in letters if letter.offset in records]
        left = letters
        for count, batch in self._batches(key, partition, letters, records, self._largest(settings)):
            now, left = left[:count], left[count:]
            try:
                await self._deliver(settings.dead_letter_topic, partition.index, batch)
            except (KafkaError, _Refused) as error:
                if isinstance(error, _Refused) or error.code in _RETRIES.errors:
                    _give_up(key, partition, now + left, error)
                    return
                # The topic does not take these; it may take the others.
                _give_up(key, partition, now, error)

    def _largest(self, settings: ShareGroupSettings) -> int:
        image = self._cluster.image
        configs = image.topic_configs(settings.dead_letter_topic)
        return self._cluster.config.topic_config(configs).max_message_bytes

    def _batches(
        self,
        key: ShareKey,
        partition: Partition,
        letters: Sequence[_Letter],
        records: dict[int, Record],
        largest: int,
    ) -> Iterator[tuple[int, bytearray]]:
        """How many of the letters each batch holds, and the batch."""
        builder, now = BatchBuilder(), self._clock.now_ms()
        for letter in letters:
            record = records.get(letter.offset)
            size = 1024 if record is None else 1024 + len(record.key or b"") + len(record.value or b"")
            if builder.count and builder.size + size > largest:
                yield builder.count, builder.build()
                builder = BatchBuilder()
            builder.append(
                now,
                None if record is None else record.key,
                None if record is None else record.value,
                _headers(key, partition, letter, record),
            )
        if builder.count:
            yield builder.count, builder.build()

    async def _deliver(self, topic: str, source: int, batch: bytearray) -> None:
        async def attempt() -> None:
            await self._require(topic)
            await self._append(topic, source, bytearray(batch))

        await _RETRIES.run(self._clock, attempt)

    async def _require(self, topic: str) -> None:
        """The topic is there and takes letters, or is made where that is allowed."""
        config, image = self._cluster.config, self._cluster.image
        prefix = config.string("errors.deadletterqueue.topic.name.prefix") or ""
        if not topic.startswith(prefix):
            raise _Refused(
                f"{topic} does not begin with {prefix!r}, as errors.deadletterqueue.topic.name.prefix asks."
            )
        if topic in image.topics:
            if not config.topic_config(image.topic_configs(topic)).errors_deadletterqueue_group_enable:
                raise _Refused(f"{topic} takes none: set errors.deadletterqueue.group.enable=true on it.")
            return
        if not config.boolean("errors.deadletterqueue.auto.create.topics.enable"):
            raise _Refused(
                f"{topic} does not exist, and errors.deadletterqueue.auto.create.topics.enable is off."
            )
        settings = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
        wanted = CreatableTopic(
            topic, -1, -1, configs=[CreatableTopicConfig(name, value) for name, value in settings.items()]
        )
        cluster = self._cluster
        if cluster.is_controller:
            created = await cluster.decide(create_topics([wanted]))
            errors = [each.error.code for each in created if each.error]
        else:
            reply = await cluster.ask_controller(CreateTopicsRequest([wanted]), CREATE_TOPICS_VERSION, None)
            errors = [ErrorCode(each.error_code) for each in reply.topics if each.error_code]
        for code in errors:
            if code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise KafkaError(code, f"{topic} cannot be created.")
        await cluster.until(lambda image: topic in image.topics)

    async def _append(self, topic: str, source: int, batch: bytearray) -> None:
        known = self._cluster.image.topics.get(topic)
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} is gone.")
        index = source % len(known.partitions)
        leader = known.partitions[index].leader
        if leader == self._replicas.broker_id:
            await self._append_here(topic, index, batch)
            return
        if leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has no leader.")
        data = TopicProduceData(topic, partition_data=[PartitionProduceData(index, bytes(batch))])
        reply = await self._peers.call(leader, ProduceRequest(None, -1, 10_000, [data]), PRODUCE_VERSION)
        result = reply.responses[0].partition_responses[0]
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code), result.error_message or "")

    async def _append_here(self, topic: str, index: int, batch: bytearray) -> None:
        partition = self._replicas.find(topic.encode(), index, by_id=False)
        last = partition.append(memoryview(batch), acks=-1).last_offset
        committed: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def done(code: ErrorCode) -> None:
            if not committed.done():
                committed.set_result(code)

        partition.when_committed(last, done)
        try:
            code = await self._clock.wait_for(committed, PATIENCE)
        except TimeoutError:
            code = ErrorCode.REQUEST_TIMED_OUT
        if code is not ErrorCode.NONE:
            raise KafkaError(code, f"The letter in {topic}-{index} is not replicated.")


def _give_up(key: ShareKey, partition: Partition, letters: Sequence[_Letter], error: Exception) -> None:
    offsets = [letter.offset for letter in letters]
    log.error(
        "Share group %s gives up %d records between %d and %d of %s without a dead letter: %s",
        key.group_id,
        len(offsets),
        offsets[0],
        offsets[-1],
        partition,
        error,
    )


def _read(partition: Partition, dead: Sequence[DeadRecords]) -> dict[int, Record]:
    """The records themselves; those that the log does not have any more are left out. May wait for the disk."""
    found: dict[int, Record] = {}
    for first, last, _, _ in dead:
        position = max(first, partition.log.log_start_offset)
        while position <= last:
            data = partition.log.read(position, READ_BYTES).read()
            if not data:
                break
            for start, header in iterate_batches(data):
                if header.base_offset <= last and not header.is_control:
                    batch = memoryview(data)[start : start + header.size]
                    try:
                        records = decode_records(batch, header)
                    except (
                        KafkaError
                    ) as error:  # A client wrote it so; the letters of other batches are sent.
                        log.error(
                            "Share group records from %d on of %s have no dead letter: %s",
                            header.base_offset,
                            partition,
                            error,
                        )
                        records = []
                    found |= {record.offset: record for record in records if first <= record.offset <= last}
                position = header.next_offset
                if position > last:
                    break
    return found


def _headers(key: ShareKey, partition: Partition, letter: _Letter, record: Record | None) -> list[Header]:
    dead = letter.dead
    headers: list[Header] = [
        (name, value)
        for name, value in (record.headers if record is not None else ())
        if not name.startswith(("__dlq.errors.", "headrace.dlq."))
    ]
    texts = {
        "__dlq.errors.topic": partition.topic,
        "__dlq.errors.partition": str(partition.index),
        "__dlq.errors.offset": str(letter.offset),
        "__dlq.errors.group": key.group_id,
        "__dlq.errors.delivery.count": str(dead.deliveries),
        "__dlq.errors.message": dead.reason.value,
        "headrace.dlq.reason": REASONS[dead.reason].format(key.group_id),
        "headrace.dlq.attempt": str(dead.deliveries),
        "headrace.dlq.topic": partition.topic,
        "headrace.dlq.partition": str(partition.index),
        "headrace.dlq.offset": str(letter.offset),
    }
    return headers + [(name, text.encode()) for name, text in texts.items()]
