"""Leader elections on request."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.client.administration.errors import Refused, check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

PREFERRED, UNCLEAN = 0, 1


def elect(
    session: Session, kind: int, partitions: Iterable[Partition] | None
) -> dict[Partition, Refused | None]:
    """The outcome by partition: None when elected, a refusal with ELECTION_NOT_NEEDED when nothing was to do.

    Without a list all partitions are meant, and those that need nothing are left out.
    """
    asked: dict[str, TopicPartitions] | None = None
    if partitions is not None:
        asked = {}
        for topic, number in partitions:
            asked.setdefault(topic, TopicPartitions(topic)).partitions.append(number)
    request = ElectLeadersRequest(kind, None if asked is None else list(asked.values()), 30_000)
    answer = session.call(request)
    check(answer.error_code)
    outcomes: dict[Partition, Refused | None] = {}
    for topic_result in answer.replica_election_results:
        for p in topic_result.partition_result:
            refused = Refused(p.error_code, p.error_message) if p.error_code else None
            outcomes[topic_result.topic, p.partition_id] = refused
    return dict(sorted(outcomes.items()))


def not_needed(outcome: Refused | None) -> bool:
    return outcome is not None and outcome.code == ErrorCode.ELECTION_NOT_NEEDED
