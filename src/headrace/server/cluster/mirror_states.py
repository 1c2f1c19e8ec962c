"""The states of a mirrored topic, and what moves it from one to the next.

    MIRRORING ── the source no longer continues what is here ──► FAILED
    MIRRORING, FAILED, DISCARDING ── an operator fails it over ──► FAILING_OVER
    FAILING_OVER ── the leaders of all partitions have said where they end ──► FAILED_OVER
    FAILED ── an operator resumes it ──► MIRRORING
    FAILED ── an operator gives up what only this cluster has ──► DISCARDING
    DISCARDING ── every partition agrees with the source ──► MIRRORING
    FAILED_OVER, or no mirror at all ── a link that adopts topics finds it at its source ──► MIRRORING

Two rules hold while a topic is read-only. The leader epoch of a partition is never below an epoch of its records, so that
clients take no metadata for stale, and the first epoch after a failover is above all of them. And this cluster hands out producer
ids only from the range of FIRST_ID_SHIFT (`mirror_links`) on, which the source does not reach: ids of two clusters never meet in one partition.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.server.cluster.changes import Change, PartitionsChanged, ProducerIdsAllocated
from headrace.server.cluster.image import (
    LinkState,
    MetadataImage,
    MirroredTopic,
    MirrorEnd,
    MirrorState,
    Partition,
    Topic,
)
from headrace.server.cluster.mirror_changes import LinkChanged, MirroredTopicChanged
from headrace.server.cluster.mirror_links import some, the_link, topics_of
from headrace.server.cluster.outcome import Outcome, PartitionEdits
from headrace.server.cluster.situation import Decision, Situation
from headrace.wire.errors import ErrorCode, KafkaError

FAILOVER_EPOCHS = 1000
"""By how much leader epochs jump at a failover. A source that goes on alone after it must not get to the same epochs: where two logs
part is told by their epochs."""


@dataclass(frozen=True, slots=True)
class EndReport:
    """What the leader of a partition says when it is failed over."""

    topic_id: uuid.UUID
    index: int
    leader_epoch: int
    end: MirrorEnd
    highest_producer_id: int


def failure(topic: Topic, mirrored: MirroredTopic, reason: str) -> MirroredTopicChanged:
    return MirroredTopicChanged(topic.id, replace(mirrored, state=MirrorState.FAILED, reason=reason))


def fail_topics(reasons: Mapping[uuid.UUID, str]) -> Decision[None]:
    """The source no longer continues these topics."""

    def decide(now: Situation) -> Outcome[None]:
        changes: list[Change] = []
        for topic_id, reason in reasons.items():
            mirrored = now.image.mirrored.get(topic_id)
            if mirrored is not None and mirrored.state in (MirrorState.MIRRORING, MirrorState.DISCARDING):
                changes.append(failure(now.image.topics_by_id[topic_id], mirrored, reason))
        return Outcome(None, changes)

    return decide


def retry_topics(link: str, names: Sequence[str] | None, discard: bool = False) -> Decision[list[str]]:
    """Let failed topics of a link go on; returns their names. They fail again if nothing has changed, unless what only this cluster
    has may be discarded."""

    def decide(now: Situation) -> Outcome[list[str]]:
        chosen = _chosen(now.image, link, names)
        failed = [(topic, each) for topic, each in chosen if each.state is MirrorState.FAILED]
        state = MirrorState.DISCARDING if discard else MirrorState.MIRRORING
        changes: list[Change] = [
            MirroredTopicChanged(topic.id, replace(each, state=state, reason="", agreed=()))
            for topic, each in failed
        ]
        return Outcome([topic.name for topic, _ in failed], changes)

    return decide


def note_agreement(agreed: Mapping[uuid.UUID, Sequence[int]]) -> Decision[None]:
    """Leaders say that partitions of topics that are DISCARDING agree with the source."""

    def decide(now: Situation) -> Outcome[None]:
        changes: list[Change] = []
        for topic_id, indexes in agreed.items():
            topic, mirrored = now.image.topics_by_id.get(topic_id), now.image.mirrored.get(topic_id)
            if topic is None or mirrored is None or mirrored.state is not MirrorState.DISCARDING:
                continue
            known = tuple(sorted({*mirrored.agreed, *indexes}))
            after = replace(mirrored, agreed=known)
            if len(known) == len(topic.partitions):
                after = replace(mirrored, state=MirrorState.MIRRORING, agreed=())
            if after != mirrored:
                changes.append(MirroredTopicChanged(topic_id, after))
        return Outcome(None, changes)

    return decide


def _chosen(
    image: MetadataImage, link: str, names: Sequence[str] | None
) -> list[tuple[Topic, MirroredTopic]]:
    the_link(image, link)
    mine = topics_of(image, link)
    if names is None:
        return mine
    missing = sorted(set(names) - {topic.name for topic, _ in mine})
    if missing:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"The mirror link '{link}' does not mirror {some(missing)}.",
        )
    return [(topic, each) for topic, each in mine if topic.name in names]


def raise_epochs(wanted: Mapping[tuple[uuid.UUID, int], int]) -> Decision[None]:
    """Let leader epochs of mirrored partitions reach the source's before records of those epochs come."""

    def decide(now: Situation) -> Outcome[None]:
        edits = PartitionEdits()
        by_topic: dict[uuid.UUID, dict[int, int]] = {}
        for (topic_id, index), epoch in wanted.items():
            by_topic.setdefault(topic_id, {})[index] = epoch
        for topic_id, epochs in by_topic.items():
            topic, mirrored = now.image.topics_by_id.get(topic_id), now.image.mirrored.get(topic_id)
            if topic is None or mirrored is None or not mirrored.read_only:
                continue
            for index, epoch in epochs.items():
                state = topic.partition(index)
                if state is not None and state.leader_epoch < epoch:
                    edits.put(topic, index, with_epoch(state, epoch))
        return Outcome(None, edits.changes())

    return decide


def with_epoch(state: Partition, epoch: int) -> Partition:
    return state._replace(leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)


# Failing over.


def fail_over(link: str, names: Sequence[str] | None) -> Decision[list[str]]:
    """Begin to fail topics over, all of a link unless some are named; returns the names of those that were not failed over before.

    A link that has nothing left to mirror is paused: it would otherwise make new topics.
    """

    def decide(now: Situation) -> Outcome[list[str]]:
        chosen = _chosen(now.image, link, names)
        begun = [
            (topic, replace(each, state=MirrorState.FAILING_OVER, reason="", ends={}, agreed=()))
            for topic, each in chosen
            if each.state not in (MirrorState.FAILING_OVER, MirrorState.FAILED_OVER)
        ]
        changes: list[Change] = [MirroredTopicChanged(topic.id, each) for topic, each in begun]
        if names is None:
            changes.append(LinkChanged(link, replace(the_link(now.image, link), state=LinkState.PAUSED)))
        return Outcome([topic.name for topic, _ in begun], changes)

    return decide


def report_ends(reports: Sequence[EndReport]) -> Decision[None]:
    """Leaders say where their partitions end. With the last of a topic, it becomes writable in new leader epochs."""

    def decide(now: Situation) -> Outcome[None]:
        changes: list[Change] = []
        by_topic: dict[uuid.UUID, list[EndReport]] = {}
        for report in reports:
            by_topic.setdefault(report.topic_id, []).append(report)
        for topic_id, mine in by_topic.items():
            topic, mirrored = now.image.topics_by_id.get(topic_id), now.image.mirrored.get(topic_id)
            if topic is not None and mirrored is not None and mirrored.state is MirrorState.FAILING_OVER:
                changes += _noted(topic, mirrored, mine)
        highest = max((report.highest_producer_id for report in reports), default=-1)
        if highest >= now.image.next_producer_id:
            changes.append(ProducerIdsAllocated(highest + 1))
        return Outcome(None, changes)

    return decide


def _noted(topic: Topic, mirrored: MirroredTopic, reports: Sequence[EndReport]) -> list[Change]:
    ends = dict(mirrored.ends)
    for report in reports:
        state = topic.partition(report.index)
        # A leader of an earlier epoch may have had more, or less, than the one that leads now.
        if state is not None and state.leader_epoch == report.leader_epoch:
            ends[report.index] = report.end
    if ends == mirrored.ends:
        return []
    if len(ends) < len(topic.partitions):
        return [MirroredTopicChanged(topic.id, replace(mirrored, ends=ends))]
    states = {
        index: with_epoch(each, each.leader_epoch + FAILOVER_EPOCHS)
        for index, each in enumerate(topic.partitions)
    }
    done = replace(mirrored, state=MirrorState.FAILED_OVER, ends=ends)
    return [MirroredTopicChanged(topic.id, done), PartitionsChanged(topic.id, states)]
