"""Failing over, on the leaders: say where each partition ends, then end the transactions that the source left open.

A leader reports the end of its log once every replica in sync has it all, so no later election can take anything from what was
reported. A transaction that was open there can never be committed, since its coordinator is at the source: it is aborted here, with
the marker that its coordinator would have written, so that readers of committed records go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headrace.clock import Clock
from headrace.server.cluster.image import MirroredTopic, MirrorEnd, MirrorLink
from headrace.server.cluster.mirror_states import EndReport
from headrace.server.log.producers import AppendOrigin
from headrace.server.mirror.options import LinkOptions
from headrace.server.mirror.position import UNKNOWN, Position
from headrace.server.mirror.source import LATEST, SourceCluster
from headrace.server.replica.partition import Partition
from headrace.wire.errors import KafkaError
from headrace.wire.markers import build_end_transaction_marker

log = logging.getLogger(__name__)

LAST_LOOK_SECONDS = 3.0


async def last_look(link: MirrorLink, positions: Sequence[Position], clock: Clock) -> None:
    """Ask the source once more where these partitions end, to state the loss; it may be out of reach."""
    try:
        source = SourceCluster(LinkOptions.of(link).connection, clock)
    except (ValueError, KafkaError):
        return
    try:
        await clock.wait_for(_look(source, positions, clock), LAST_LOOK_SECONDS)
    except (OSError, KafkaError, TimeoutError) as error:
        log.info("the source of the link %s does not say where it ends: %s", link.name, error)
    finally:
        source.close()


async def _look(source: SourceCluster, positions: Sequence[Position], clock: Clock) -> None:
    found = await source.topics(sorted({position.partition.topic for position in positions}))
    for position in positions:
        topic, index = found.get(position.partition.topic), position.partition.index
        if topic is None or topic.id != position.source_id or topic.leaders.get(index, UNKNOWN) < 0:
            continue
        asked_at_ms = clock.now_ms()
        end = await source.offset(topic.leaders[index], topic.name, index, LATEST, LAST_LOOK_SECONDS)
        position.answered(end, asked_at_ms)


def report_of(position: Position, now_ms: int) -> EndReport | None:
    """What its leader says of a partition; None until the replicas in sync have all of it."""
    partition = position.partition
    log_ = partition.log
    if not partition.is_leader or log_.high_watermark < log_.log_end_offset:
        return None
    highest = max((entry.producer_id for entry in log_.active_producers), default=UNKNOWN)
    end = MirrorEnd(log_.log_end_offset, position.source_end, position.complete_until_ms, now_ms)
    return EndReport(partition.topic_id, partition.index, partition.leader_epoch, end, highest)


def abort_open_transactions(partition: Partition, mirrored: MirroredTopic, now_ms: int) -> int:
    """As the leader of a partition that was failed over; returns how many were open."""
    end = mirrored.ends.get(partition.index)
    if end is None or not partition.is_leader or partition.mirrored:
        return 0
    aborted = 0
    for entry in partition.log.active_producers:
        if not 0 <= entry.transaction_first_offset < end.offset:
            continue
        marker = build_end_transaction_marker(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            coordinator_epoch=max(entry.coordinator_epoch, 0),
            committed=False,
            timestamp=now_ms,
        )
        partition.append(memoryview(marker), AppendOrigin.COORDINATOR)
        aborted += 1
    if aborted:
        log.info("%s: %d transactions were open when it was failed over; aborted", partition, aborted)
    return aborted
