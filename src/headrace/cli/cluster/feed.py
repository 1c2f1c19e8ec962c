"""Reading records from partitions until there is nothing more to wait for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from headrace.cli.cluster.connection import Refused

_BATCH = 500


def batches(
    consumer: Consumer,
    *,
    most: int | None = None,
    idle_timeout: float | None = None,
    ends: set[tuple[str, int]] | None = None,
    in_group: bool = True,
) -> Iterator[list[Message]]:
    """Batches of records, as they come.

    Stops after `most` records, after `idle_timeout` seconds without one, or when every partition of `ends` has
    been read to its end (the consumer must have enable.partition.eof). Yields empty batches while it waits, so
    that the caller can do other work. librdkafka looks for a coordinator even where no group is joined: that this is not
    permitted then matters to nobody, unless `in_group`.
    """
    left = most
    waiting_since = time.monotonic()
    while left is None or left > 0:
        wanted = _BATCH if left is None else min(_BATCH, left)
        # A first record that is there is handed out at once; a batch only groups what has already arrived.
        got = consumer.consume(wanted, timeout=0) or consumer.consume(1, timeout=0.1)
        records = []
        for message in got:
            error = message.error()
            if error is None:
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                if ends is not None:
                    ends.discard((message.topic() or "", message.partition() or 0))
            elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and not in_group:
                continue
            elif not _is_passing(error):
                raise Refused.of(error)
        if records:
            waiting_since = time.monotonic()
            left = None if left is None else left - len(records)
        yield records
        if ends is not None and not ends and not records:
            return
        if idle_timeout is not None and time.monotonic() - waiting_since > idle_timeout:
            return


def start(
    consumer: Consumer,
    partitions: Sequence[tuple[str, int]],
    position: str | int,
    timestamp: int | None = None,
) -> None:
    """Assign partitions from 'earliest', 'latest', an offset, an offset counted from the end (negative), or a time."""
    if timestamp is not None:
        asked = [TopicPartition(*each, timestamp) for each in partitions]
        try:
            found = consumer.offsets_for_times(asked, timeout=30)
        except KafkaException as error:
            raise Refused.of(error.args[0]) from None
        consumer.assign([TopicPartition(tp.topic, tp.partition, tp.offset) for tp in found])
        return
    chosen = []
    for each in partitions:
        if position == "earliest":
            offset = OFFSET_BEGINNING
        elif position == "latest":
            offset = OFFSET_END
        else:
            offset = int(position)
            if offset < 0:
                low, high = consumer.get_watermark_offsets(TopicPartition(*each), timeout=30)
                offset = max(low, high + offset)
        chosen.append(TopicPartition(*each, offset))
    consumer.assign(chosen)


def _is_passing(error: KafkaError) -> bool:
    """Trouble that librdkafka recovers from by itself: leaders move, brokers come back, a topic is being created."""
    passing = (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    )
    return error.code() in passing or error.retriable()
