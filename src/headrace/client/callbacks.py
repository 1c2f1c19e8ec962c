"""The program's callbacks, called from inside librdkafka's.

What one of them raises cannot pass librdkafka, which would drop a record with it: it is kept here, and raised by the read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TypeVar

import confluent_kafka
from confluent_kafka import KafkaError

from headrace.client.config import log
from headrace.client.errors import BrokerError, commit_error
from headrace.client.positions import Offsets
from headrace.client.record import TopicPartition, from_librdkafka

OnAssign = Callable[[Collection[TopicPartition]], Offsets | None]
"""Called with newly assigned partitions; may return offsets to start from instead of the committed ones."""
OnRevoke = Callable[[Collection[TopicPartition]], None]
OnCommit = Callable[[Offsets, BrokerError | None], None]

T = TypeVar("T")


class Callbacks:
    def __init__(self, on_commit: OnCommit | None) -> None:
        self._on_commit = on_commit
        self._rebalancing: int | None = None
        """The thread in which a rebalance callback runs now."""
        self.error: Exception | None = None
        """What a callback raised and no read has raised yet."""

    @property
    def is_rebalancing_here(self) -> bool:
        """Whether this is called from a rebalance callback."""
        return self._rebalancing == threading.get_ident()

    def rebalance(
        self, callback: Callable[[Collection[TopicPartition]], T] | None, about: set[TopicPartition]
    ) -> T | None:
        if callback is None:
            return None
        self._rebalancing = threading.get_ident()
        try:
            return callback(about)
        except Exception as error:
            self.error = error
            return None
        finally:
            self._rebalancing = None

    def committed(self, error: KafkaError | None, partitions: list[confluent_kafka.TopicPartition]) -> None:
        """The outcome of a commit that no caller waits for."""
        failed = error or next((each.error for each in partitions if each.error is not None), None)
        failure = None if failed is None or failed.code() == KafkaError._NO_OFFSET else commit_error(failed)
        if self._on_commit is not None:
            try:
                self._on_commit(from_librdkafka(partitions), failure)
            except Exception as raised:
                self.error = raised
        elif failure is not None:
            log.warning("%s", failure)

    def raise_error(self) -> None:
        """Raise what a callback raised, once."""
        error, self.error = self.error, None
        if error is not None:
            raise error
