"""A producer's transactions as a ``with`` block: commit at its end, abort when it raises.

With a consumer, the offsets of everything it has returned join the transaction; after an abort the consumer
is taken back to where the transaction began, so that the same records come again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.config import ProducerSettings, log
from headrace.client.errors import (
    BrokerError,
    ClientError,
    ConfigError,
    FencedError,
    TransactionAborted,
    explain,
    is_fenced,
    kafka_error,
)

if TYPE_CHECKING:
    from headrace.client.consumer import Consumer

_PAUSE_BETWEEN_TRIES = 0.1


class Transaction:
    """One producer's transactions, one at a time; made by ``Producer.transaction``."""

    def __init__(self, librdkafka: confluent_kafka.Producer, settings: ProducerSettings) -> None:
        self._librdkafka = librdkafka
        self._settings = settings
        self._initialized = False
        self._open = False
        self._consumer: Consumer[Any, Any] | None = None

    def including(self, consumer: Consumer[Any, Any] | None) -> Self:
        if self._settings.transactional_id is None:
            raise ConfigError(
                "transactions need transactional_id=: a name that stays the same when this producer "
                "restarts and "
                "that no other running producer has"
            )
        if self._open:
            raise ConfigError(
                "this producer already has a transaction open: end it first, or use another producer"
            )
        if consumer is not None:
            consumer.check_transactional()
        self._consumer = consumer
        return self

    def begin(self) -> None:
        """Open the transaction; the first one also fences older producers with the same id."""
        if not self._initialized:
            self._insist("starting transactions", self._librdkafka.init_transactions)
            self._initialized = True
        self._insist("beginning the transaction", lambda _: self._librdkafka.begin_transaction())
        self._open = True

    def commit(self) -> None:
        """Send the consumer's offsets and commit; on failure abort, rewind the consumer and raise.

        When it is not known whether it was committed, the consumer asks for the group's offsets and goes on there.
        """
        consumer = self._consumer
        try:
            if consumer is not None:
                offsets, group = consumer.transaction_offsets()
                if offsets:
                    self._insist(
                        "adding the consumed offsets to the transaction",
                        lambda left: self._librdkafka.send_offsets_to_transaction(offsets, group, left),
                    )
            self._insist("committing the transaction", self._librdkafka.commit_transaction)
        except TransactionAborted:
            self.abort()
            raise
        except BaseException:
            self._open = False
            if consumer is not None:
                consumer.transaction_in_doubt()
            raise
        self._open = False
        if consumer is not None:
            consumer.transaction_ended(committed=True)

    def abort(self) -> None:
        """Roll back; the consumer returns to where the transaction began."""
        self._open = False
        try:
            self._insist("aborting the transaction", self._librdkafka.abort_transaction)
        finally:
            if self._consumer is not None:
                self._consumer.transaction_ended(committed=False)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
            return
        try:
            self.abort()
        except ClientError as failure:
            log.warning("after %s: %s", type(error).__name__, failure)

    def _insist(self, doing: str, step: Callable[[float], object]) -> None:
        """Run one step, for up to transaction.timeout.ms while librdkafka says it may be tried again."""
        deadline = time.monotonic() + self._settings.transaction_timeout
        while True:
            try:
                step(max(_PAUSE_BETWEEN_TRIES, deadline - time.monotonic()))
                return
            except KafkaException as failure:
                error = kafka_error(failure)
                if not error.retriable() or time.monotonic() >= deadline:
                    raise self._failure(error, doing) from failure
                time.sleep(_PAUSE_BETWEEN_TRIES)

    def _failure(self, error: KafkaError, doing: str) -> BrokerError:
        name = self._settings.transactional_id
        if is_fenced(error):
            return FencedError(
                f'{doing} failed: a newer producer with the transactional.id "{name}" has started, and the '
                f"broker "
                "has fenced this one so that nothing it sends can be committed; close it, and if both are "
                "meant to "
                "run, give each its own transactional.id",
                error.code(),
            )
        if error.txn_requires_abort():
            return TransactionAborted(
                f"{doing} failed and the transaction is rolled back: {explain(error)}; process the records "
                f"again",
                error.code(),
                retriable=True,
            )
        if error.retriable():
            return BrokerError(
                f"{doing} was not confirmed within {self._settings.transaction_timeout:g} s "
                f"(transaction.timeout.ms): "
                f"{explain(error)}; close this producer, the next one with the same transactional.id "
                f"settles it",
                error.code(),
                retriable=True,
            )
        return BrokerError(f"{doing} failed for good: {explain(error)}; close this producer", error.code())
