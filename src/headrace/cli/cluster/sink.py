"""Sending records to a topic: as fast as the producer takes them, remembering the first failure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaError, KafkaException, Message

from headrace.cli.cluster.connection import Refused
from headrace.cli.failure import Failure
from headrace.cli.view.records.record import Record
from headrace.client.administration import configs, topics
from headrace.client.administration.errors import sentence

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

GRACE_SECONDS = 10.0
_CREATION = 5.0  # seconds a topic may take to be created on first use


class Sink:
    def __init__(self, cluster: Cluster, topic: str, settings: Mapping[str, str | int | bool]) -> None:
        """Raises Failure when the topic is not there and the cluster does not create it on first use."""
        self.topic = topic
        self.by_partition: Counter[int] = Counter()
        """Records that were acknowledged."""
        self.failed = 0
        self._first_failure: KafkaError | None = None
        self._producer = cluster.producer(settings)
        self.created = _await_topic(cluster, topic, self._producer.list_topics)
        """The topic was not there: writing to it made it."""

    def send(self, record: Record, *, wait: bool = False) -> None:
        """Hand a record over; with `wait`, return only when it is delivered. Raises Failure once one has failed."""
        while True:
            try:
                self._producer.produce(
                    self.topic,
                    value=record.value,
                    key=record.key,
                    headers=record.headers or None,  # type: ignore[arg-type]
                    partition=-1 if record.partition is None else record.partition,
                    timestamp=record.timestamp or 0,
                    on_delivery=self._delivered,
                )
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise self._refused(error.args[0]) from None
        if wait:
            self._producer.flush()
        else:
            self._producer.poll(0)
        self._check()

    def poll(self) -> None:
        self._producer.poll(0)
        self._check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was read before a bad line or Ctrl-C is still written."""
        if kind is None:
            self.finish()
        else:
            self._producer.flush(GRACE_SECONDS)

    def finish(self, timeout: float | None = None) -> None:
        """Wait for every record. Raises Failure if one was not delivered."""
        left = self._producer.flush() if timeout is None else self._producer.flush(timeout)
        self._check()
        if left:
            raise Failure(f"{left} records were not delivered in time.")

    @property
    def sent(self) -> int:
        return self.by_partition.total()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.by_partition[message.partition() or 0] += 1
        else:
            self.failed += 1
            self._first_failure = self._first_failure or error

    def _check(self) -> None:
        if self._first_failure is not None:
            raise self._refused(self._first_failure)

    def _refused(self, error: KafkaError) -> Failure:
        if error.code() == KafkaError._UNKNOWN_PARTITION:
            return Failure(
                f"Topic '{self.topic}' has no such partition; 'headrace topics describe' shows them."
            )
        if error.code() == KafkaError._MSG_TIMED_OUT:
            return Failure(
                f"A record to '{self.topic}' was not acknowledged in time; is the partition's leader up?"
            )
        if error.code() == KafkaError.INVALID_REQUEST:
            return Failure(
                f"A record to '{self.topic}' was refused as invalid; a mirrored topic takes none until it is failed over "
                "('headrace mirror list')."
            )
        return Failure(f"A record to '{self.topic}' was not written: {sentence(error)}")


def _await_topic(cluster: Cluster, topic: str, metadata: Callable[..., Any]) -> bool:
    """Until the topic is there; whether that made it."""
    try:
        cluster.call(topics.describe, [topic])
        return False
    except Refused:
        raise
    except Failure as missing:
        if not _creates_on_first_use(cluster):
            raise
        deadline = time.monotonic() + _CREATION
        while time.monotonic() < deadline:
            # A producer's metadata request is what creates the topic.
            if metadata(topic, timeout=_CREATION).topics[topic].error is None:
                return True
            time.sleep(0.05)
        raise missing from None


def _creates_on_first_use(cluster: Cluster) -> bool:
    broker = str(cluster.nodes[0].id)
    settings = cluster.call(configs.describe, "broker", [broker])[broker]
    return any(s.name == "auto.create.topics.enable" and s.value == "true" for s in settings)
