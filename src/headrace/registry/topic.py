"""The topic `_schemas` on any Kafka cluster: made when it is missing, read from a place on, and written by one fenced writer.

Blocking; each of the two sides is used by one thread and has connections of its own.

The writer takes a producer id by a transactional id, which gives it a higher epoch than any writer before it, and writes without
transactions: one request a batch. A broker refuses a lower epoch once it has seen the higher one, so the first thing a new writer does is
to write a record that says nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from headrace.link.cluster import TRANSACTION, Cluster, lost_leader
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import KafkaSettings
from headrace.registry.records import NOOP_KEY
from headrace.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, advance_sequence, iterate_batches
from headrace.wire.errors import RETRIABLE, ErrorCode, KafkaError
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.records import BatchBuilder, Record, decode_records
from headrace.wire.schema import ZERO_UUID

log = logging.getLogger("headrace.registry")

_TOPIC_IDS, _PRODUCE_BY_NAME = 13, 12
_FETCH_BYTES = 8 << 20
_WAIT_MS = 500
_USUAL_REPLICAS = 3
_TOPIC_RESOURCE = 2
_FENCED = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)


class TopicError(Exception):
    """The topic cannot be used as it is; the sentence says what to do."""


class Fenced(Exception):
    """Another instance writes now."""


class TooLarge(Exception):
    """A record that the topic does not take."""


def ensure(settings: KafkaSettings, topic: str, replicas: int) -> str:
    """Make the topic if it is missing; the cluster's id. TopicError when it would forget schemas or has no order."""
    cluster = Cluster(settings)
    try:
        found = cluster.topics([topic]).get(topic)
        if found is None:
            _create(cluster, topic, replicas)
            found = cluster.retry(f"see the new topic {topic}", lambda: cluster.topic(topic))
        if len(found.leaders) != 1:
            raise TopicError(
                f"The topic {topic} has {len(found.leaders)} partitions and therefore no order; the registry needs one "
                "with a single partition (kafkastore.topic)."
            )
        _check_compacted(cluster, topic)
        return cluster.retry("ask for the cluster's id", lambda: _cluster_id(cluster))
    finally:
        cluster.close()


def _cluster_id(cluster: Cluster) -> str:
    from headrace.wire.messages.metadata import MetadataRequest

    return cluster.any_broker().call(MetadataRequest([], allow_auto_topic_creation=False)).cluster_id or ""


def _create(cluster: Cluster, topic: str, replicas: int) -> None:
    cluster.all_topics()
    count = min(replicas or _USUAL_REPLICAS, max(len(cluster.brokers()), 1))
    request = CreateTopicsRequest(
        [CreatableTopic(topic, 1, count, configs=[CreatableTopicConfig("cleanup.policy", "compact")])],
        timeout_ms=int(cluster.settings.request_timeout * 1000),
    )

    def ask() -> None:
        # Any broker of Headrace or of Kafka in KRaft mode passes it on to the controller.
        answer = cluster.any_broker().call(request).topics[0]
        if answer.error_code and answer.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
            code = ErrorCode(answer.error_code)
            raise KafkaError(code, f"The topic {topic} cannot be made: {answer.error_message or code.name}")

    cluster.retry(f"make the topic {topic}", ask)


def _check_compacted(cluster: Cluster, topic: str) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(_TOPIC_RESOURCE, topic, ["cleanup.policy"])])
    answer = cluster.retry("read the topic's settings", lambda: cluster.any_broker().call(request).results[0])
    if answer.error_code:
        log.warning(
            "whether the topic %s is compacted cannot be seen: %s", topic, ErrorCode(answer.error_code).name
        )
        return
    policy = next((each.value for each in answer.configs if each.name == "cleanup.policy"), None)
    if policy != "compact":
        raise TopicError(
            f"The topic {topic} has cleanup.policy={policy} and would lose schemas: "
            f"headrace configs alter topic {topic} --set cleanup.policy=compact"
        )


class TopicReader:
    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._cluster = Cluster(settings)
        self._topic = topic
        self.position = 0
        self.caught_up = False
        """Whether the last read came to the end."""

    def close(self) -> None:
        self._cluster.close()

    def read(self) -> list[Record]:
        """The next records; none when nothing new came for a while. Errors that pass are waited out."""
        try:
            return self._read()
        except (BrokerUnavailable, KafkaError) as error:
            if isinstance(error, KafkaError) and error.code not in RETRIABLE and not lost_leader(error.code):
                raise
            self._cluster.forget(self._topic)
            time.sleep(self._cluster.settings.retry_backoff)
            return []

    def _read(self) -> list[Record]:
        connection = self._cluster.leader(self._topic, 0)
        version = connection.offer.version_of(FetchRequest)
        topic_id = self._cluster.topic(self._topic).id
        if topic_id == ZERO_UUID:
            version = min(version, _TOPIC_IDS - 1)
        wanted = FetchPartition(0, fetch_offset=self.position, partition_max_bytes=_FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            topics=[FetchTopic(self._topic, topic_id, [wanted])],
        )
        reply = connection.call(request, version)
        code = ErrorCode(reply.error_code)
        if code == ErrorCode.NONE and reply.responses:
            data = reply.responses[0].partitions[0]
            code = ErrorCode(data.error_code)
            if code == ErrorCode.NONE:
                found = self._take(data.records or b"")
                self.caught_up = self.position >= data.high_watermark
                return found
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise TopicError(
                f"The topic {self._topic} lost records or was made anew while the registry read it; restart the registry."
            )
        if code:
            raise KafkaError(code, f"reading {self._topic} failed: {code.name}")
        return []

    def _take(self, data: bytes) -> list[Record]:
        found: list[Record] = []
        for place, header in iterate_batches(data):
            if header.last_offset < self.position:
                continue
            if not header.is_control:
                batch = memoryview(data)[place : place + header.size]
                found += [each for each in decode_records(batch, header) if each.offset >= self.position]
            self.position = header.next_offset
        return found


class TopicWriter:
    def __init__(self, settings: KafkaSettings, topic: str, transactional_id: str) -> None:
        self._cluster = Cluster(settings)
        self._topic = topic
        self._id = transactional_id
        self._producer_id, self._epoch, self._sequence = NO_PRODUCER_ID, NO_PRODUCER_EPOCH, 0

    def close(self) -> None:
        self._cluster.close()

    def begin(self) -> int:
        """Fence every writer before this one. The offset up to which the topic has to be read before anything is decided."""
        reply = self._cluster.call_coordinator(
            TRANSACTION,
            self._id,
            InitProducerIdRequest(self._id, 60_000),
            lambda answer: answer.error_code,
        )
        self._producer_id, self._epoch, self._sequence = reply.producer_id, reply.producer_epoch, 0
        return self.append([(NOOP_KEY, None)])

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        """The offset of the first record, once all are in every in-sync replica. Fenced, TooLarge, or what stopped it: then nobody knows
        whether they are written."""
        batch = BatchBuilder(
            producer_id=self._producer_id, producer_epoch=self._epoch, base_sequence=self._sequence
        )
        now = int(time.time() * 1000)
        for key, value in records:
            batch.append(now, key, value)
        data = bytes(batch.build())
        offset = self._cluster.retry("write to the schemas' topic", lambda: self._send(data))
        self._sequence = advance_sequence(self._sequence, batch.count)
        return offset

    def _send(self, data: bytes) -> int:
        connection = self._cluster.leader(self._topic, 0)
        request = ProduceRequest(
            None,
            -1,
            int(self._cluster.settings.request_timeout * 1000),
            [TopicProduceData(self._topic, partition_data=[PartitionProduceData(0, data)])],
        )
        version = min(connection.offer.version_of(ProduceRequest), _PRODUCE_BY_NAME)
        answer = connection.call(request, version).responses[0].partition_responses[0]
        code = ErrorCode(answer.error_code)
        if code == ErrorCode.NONE:
            return answer.base_offset
        if code in _FENCED or code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise Fenced(code.name)
        if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            raise TooLarge
        if lost_leader(code):
            self._cluster.forget(self._topic)
        raise KafkaError(code, f"writing to {self._topic} failed: {answer.error_message or code.name}")
