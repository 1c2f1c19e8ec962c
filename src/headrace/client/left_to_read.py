"""What a group has not read yet before some offsets: judged by records, not by offsets alone.

A group that has read everything may stand before the end all the same: markers of transactions and what compaction has removed
have offsets and no records. So where offsets are left, the next record is looked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from headrace.client.administration import group_offsets, offsets
from headrace.client.administration.lag import ONE_RECORD
from headrace.client.administration.session import Session
from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError
from headrace.client.positions import Offsets
from headrace.client.record import TopicPartition

_PATIENCE = 60.0
"""Seconds in which the next record of a partition must arrive, or its end be reached."""


def starts(
    session: Session, group: str, partitions: Iterable[TopicPartition], *, stable: bool = True
) -> dict[TopicPartition, int]:
    """The next record that the group reads in each: where it committed, and else the first one there is.

    Unless told otherwise, it raises a BrokerError while a transaction may still commit offsets of the group.
    """
    wanted = list(partitions)
    committed = group_offsets.committed(session, group, stable=stable)
    firsts = offsets.earliest(session, [(each.topic, each.partition) for each in wanted])
    return {
        each: max(committed[each].offset, firsts[each]) if each in committed else firsts[each]
        for each in wanted
    }


def unread(
    session: Session, config: Mapping[str, object], group: str, ends: Offsets, *, stable: bool = True
) -> dict[TopicPartition, int]:
    """The partitions with something unread before their end, with the offsets that are left there."""
    reached = starts(session, group, ends, stable=stable)
    behind = {each: start for each, start in reached.items() if start < ends[each]}
    if not behind:
        return {}
    following = next_records(config, behind)
    asked = offsets.list_offsets(
        session,
        [(each.topic, each.partition) for each in behind],
        offsets.LATEST,
        read_committed=True,
    )
    last_stable = offsets.all_of(asked)
    left = {}
    for each, start in behind.items():
        record = following[each]
        in_doubt = record is None and last_stable[each] < ends[each]  # an open transaction
        if in_doubt or (record is not None and record < ends[each]):
            left[each] = ends[each] - start
    return left


def next_records(config: Mapping[str, object], places: Offsets) -> dict[TopicPartition, int | None]:
    """The offset of the first record at or after each place that a reader of committed records gets; None at the end."""
    found: dict[TopicPartition, int | None] = {}
    if not places:
        return found
    settings = {**connection_settings(config), **ONE_RECORD, "isolation.level": "read_committed"}
    deadline = time.monotonic() + _PATIENCE
    with Consumer[bytes, bytes](settings) as consumer:
        consumer.assign(places)
        while len(found) < len(places):
            for record in consumer.poll(0.1):
                found.setdefault(record.topic_partition, record.offset)
            for partition in consumer.ended:
                found.setdefault(partition, None)
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"the next records got no answer within {_PATIENCE:g} s: check that the brokers are running",
                    retriable=True,
                )
    return found
