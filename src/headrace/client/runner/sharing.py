"""A runner in a share group: records come one by one, each is acknowledged by itself.

One thread polls and acknowledges, the others handle. What a poll returned is handled before the next one: librdkafka asks for a
word about every record first.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import KafkaError, KafkaException

from headrace.client.config import config_error, connection_settings, log_error
from headrace.client.dead_letters import DeadLetters
from headrace.client.errors import BrokerError, ClientError, ConfigError, broker_error, explain, kafka_error
from headrace.client.handlers import check_done
from headrace.client.record import Record, from_message
from headrace.client.runner.hooks import Hook, around, tell
from headrace.client.runner.retry import Retry

if TYPE_CHECKING:
    from confluent_kafka import Message, ShareConsumer

log = logging.getLogger("headrace.client.runner")

POLL_SECONDS = 0.2
COMMIT_SECONDS = 30.0


class Verdict(enum.Enum):
    ACCEPT = "accept"
    RELEASE = "release"
    """To be tried again, by whichever member gets it."""
    REJECT = "reject"


class Stopping(Protocol):
    def is_set(self) -> bool: ...


class Sharing:
    def __init__(
        self,
        handler: Callable[[Record[Any, Any]], object],
        config: Mapping[str, object],
        group_id: str,
        topics: Sequence[str],
        concurrency: int,
        batch: int,
        retry: Retry,
        dead_letters: DeadLetters | None,
        decode_key: Callable[[bytes], Any] | None,
        decode_value: Callable[[bytes], Any] | None,
        hooks: Sequence[Hook],
        stopping: Stopping,
    ) -> None:
        self._handler = handler
        self._config = {
            **connection_settings(dict(config)),
            "group.id": group_id,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": batch,
            "error_cb": log_error,
        }
        self._topics = list(topics)
        self._concurrency = concurrency
        self._retry = retry
        self._dead_letters = dead_letters
        self._decode_key = decode_key
        self._decode_value = decode_value
        self._hooks = hooks
        self._stopping = stopping

    def run(self) -> None:
        consumer = self._open()
        try:
            consumer.subscribe(self._topics)
            with ThreadPoolExecutor(self._concurrency, "headrace-runner") as pool:
                while not self._stopping.is_set():
                    messages = self._messages(consumer)
                    verdicts = list(pool.map(self._judge, messages))
                    self._acknowledge(consumer, messages, verdicts)
        finally:
            consumer.close()

    def _open(self) -> ShareConsumer:
        try:
            from confluent_kafka import ShareConsumer
        except ImportError:
            raise ConfigError(
                'group_type="share" needs confluent-kafka 2.16 or newer: pip install -U confluent-kafka'
            ) from None
        try:
            return ShareConsumer(self._config)
        except (KafkaException, TypeError, ValueError) as error:
            raise config_error(error, self._config) from error

    def _messages(self, consumer: ShareConsumer) -> list[Message]:
        try:
            polled = consumer.poll(POLL_SECONDS)
        except KafkaException as cause:
            raise self._refused(cause) from cause
        messages = []
        for message in polled:
            error = message.error()
            if error is None:
                messages.append(message)
            else:
                log.warning("%s", explain(error))
        return messages

    def _refused(self, cause: KafkaException) -> BrokerError:
        code = kafka_error(cause).code()
        if code == KafkaError.UNSUPPORTED_VERSION:
            return BrokerError(
                "the cluster does not offer share groups: 'headrace features set share.version=2' switches them on when all "
                "brokers run this version",
                code,
            )
        return broker_error(cause, f"reading as a member of the share group {self._config['group.id']}")

    def _acknowledge(
        self, consumer: ShareConsumer, messages: Sequence[Message], verdicts: Sequence[Verdict]
    ) -> None:
        from confluent_kafka import AcknowledgeType

        kinds = {
            Verdict.ACCEPT: AcknowledgeType.ACCEPT,
            Verdict.RELEASE: AcknowledgeType.RELEASE,
            Verdict.REJECT: AcknowledgeType.REJECT,
        }
        try:
            for message, verdict in zip(messages, verdicts, strict=True):
                consumer.acknowledge(message, kinds[verdict])
            results = consumer.commit_sync(timeout=COMMIT_SECONDS) if messages else {}
        except KafkaException as error:
            log.warning("records were not acknowledged and will be handled again: %s", error)
            return
        for partition, refused in results.items():
            if refused is not None:
                log.warning(
                    "records of %s-%d were not acknowledged and will be handled again: %s",
                    partition.topic,
                    partition.partition,
                    refused,
                )

    def _judge(self, message: Message) -> Verdict:
        """Handle one record, in a thread of the pool."""
        if self._stopping.is_set():
            return Verdict.RELEASE
        record = from_message(message, self._decode_key, self._decode_value)
        attempt = message.delivery_count() or 1
        started = time.monotonic()
        try:
            with around(self._hooks, record, attempt):
                result = self._handler(record)
            if result is not None:
                check_done(result, "the handler")
        except (Exception, asyncio.CancelledError) as error:
            return self._after_failure(record, attempt, error)
        tell(self._hooks, "handled", record, time.monotonic() - started)
        return Verdict.ACCEPT

    def _after_failure(self, record: Record[Any, Any], attempt: int, error: BaseException) -> Verdict:
        """The next delivery is the next attempt; when it comes is for the group to say."""
        again = self._retry.next_delay(attempt, attempt, error)
        tell(self._hooks, "failed", record, attempt, error, again)
        if again is not None:
            log.info("%s failed (delivery %d), it is released: %r", record, attempt, error)
            return Verdict.RELEASE
        log.warning("%s failed for good at delivery %d: %r", record, attempt, error)
        if self._dead_letters is None:
            return Verdict.REJECT
        try:
            self._dead_letters.send(record, error, attempt).result()
        except ClientError as problem:
            log.error("the dead letter of %s was not written, it is released: %s", record, problem)
            return Verdict.RELEASE
        tell(self._hooks, "dead_letter", record, attempt, error)
        return Verdict.ACCEPT
