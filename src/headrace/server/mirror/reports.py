"""What the brokers of a cluster tell its controller about mirrored partitions they lead, as a document of JSON."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field

from headrace.server.cluster import mirror_states
from headrace.server.cluster.ids import format_id, parse_id
from headrace.server.cluster.image import MirrorEnd
from headrace.server.cluster.mirror_states import EndReport
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.situation import Decision, Situation
from headrace.wire.errors import ErrorCode, KafkaError


@dataclass(slots=True)
class Report:
    epochs: dict[tuple[uuid.UUID, int], int] = field(default_factory=dict)
    """Leader epochs of the source that partitions here must reach."""
    failed: dict[uuid.UUID, str] = field(default_factory=dict)
    """Topics that the source no longer continues, and why."""
    ends: list[EndReport] = field(default_factory=list)
    """Where partitions end that are being failed over."""
    agreed: dict[uuid.UUID, list[int]] = field(default_factory=dict)
    """Partitions of topics that are DISCARDING which agree with the source."""

    def __bool__(self) -> bool:
        return bool(self.epochs or self.failed or self.ends or self.agreed)

    def to_json(self) -> str:
        return json.dumps(
            {
                "epochs": [[format_id(topic), index, epoch] for (topic, index), epoch in self.epochs.items()],
                "failed": {format_id(topic): reason for topic, reason in self.failed.items()},
                "ends": [
                    [
                        format_id(each.topic_id),
                        each.index,
                        each.leader_epoch,
                        list(each.end),
                        each.highest_producer_id,
                    ]
                    for each in self.ends
                ],
                "agreed": {format_id(topic): indexes for topic, indexes in self.agreed.items()},
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Report:
        try:
            read = json.loads(text)
            return cls(
                {(parse_id(topic), index): epoch for topic, index, epoch in read["epochs"]},
                {parse_id(topic): reason for topic, reason in read["failed"].items()},
                [
                    EndReport(parse_id(topic), index, epoch, MirrorEnd(*end), highest)
                    for topic, index, epoch, end, highest in read["ends"]
                ],
                {parse_id(topic): indexes for topic, indexes in read["agreed"].items()},
            )
        except (ValueError, KeyError, TypeError) as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"This is no report of mirrors: {error}.") from None


def note(report: Report) -> Decision[None]:
    """What the controller makes of a report."""

    def decide(now: Situation) -> Outcome[None]:
        outcome = mirror_states.raise_epochs(report.epochs)(now)
        decisions = (
            mirror_states.fail_topics(report.failed),
            mirror_states.note_agreement(report.agreed),
            mirror_states.report_ends(report.ends),
        )
        for decision in decisions:
            outcome = outcome.followed_by(decision(now.after(outcome.changes)).changes)
        return outcome

    return decide
