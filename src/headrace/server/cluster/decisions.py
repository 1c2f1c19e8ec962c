"""The operations of the controller that requests ask for, each as a decision for `ClusterNode.decide`.

What is allowed and what changes is worked out by the pure functions in the modules imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.server.cluster import (
    acls,
    brokers,
    config_changes,
    features,
    leaders,
    partitions,
    quota_changes,
    reassignments,
    tokens,
    topics,
)
from headrace.server.cluster.acls import Created, Removed
from headrace.server.cluster.changes import ProducerIdsAllocated
from headrace.server.cluster.config_changes import ConfigOp, Errors
from headrace.server.cluster.image import ConfigResource, DelegationToken
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.quota_changes import Alteration
from headrace.server.cluster.situation import Decision, Situation
from headrace.server.cluster.topics import CreatedTopic
from headrace.server.security.acls import Acl, AclFilter
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from headrace.wire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from headrace.wire.messages.create_topics import CreatableTopic
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from headrace.wire.messages.update_features import UpdateFeaturesRequest

if TYPE_CHECKING:
    from headrace.server.cluster import scram
    from headrace.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest

PRODUCER_ID_BLOCK = 1000


def create_topics(requested: Sequence[CreatableTopic]) -> Decision[list[CreatedTopic]]:
    return lambda now: topics.create_topics(now.image, now.config, requested, now.cordoned)


def create_partitions(
    requested: Sequence[CreatePartitionsTopic],
) -> Decision[list[CreatePartitionsTopicResult]]:
    return lambda now: topics.create_partitions(now.image, requested, now.cordoned)


def incremental_alter_configs(requested: Mapping[ConfigResource, Sequence[ConfigOp]]) -> Decision[Errors]:
    return lambda now: _with_leaders_allowed(
        now, config_changes.incremental_alter(now.image, now.config, requested)
    )


def alter_configs(requested: Mapping[ConfigResource, Mapping[str, str | None]]) -> Decision[Errors]:
    return lambda now: _with_leaders_allowed(
        now, config_changes.replace_all(now.image, now.config, requested)
    )


def _with_leaders_allowed(now: Situation, outcome: Outcome[Errors]) -> Outcome[Errors]:
    """Settings that newly allow unclean election take effect at once."""
    if not config_changes.touches("unclean.leader.election.enable", outcome.changes):
        return outcome
    after = now.after(outcome.changes)
    return outcome.followed_by(leaders.elect_uncleanly(after.image, after.unclean))


def alter_client_quotas(requested: Sequence[Alteration]) -> Decision[list[KafkaError | None]]:
    return lambda now: quota_changes.alter_quotas(now.image, requested)


def alter_partition(request: AlterPartitionRequest) -> Decision[AlterPartitionResponse]:
    return lambda now: partitions.alter_partition(now.image, request, now.unclean, now.full)


def elect_leaders(request: ElectLeadersRequest) -> Decision[ElectLeadersResponse]:
    return lambda now: leaders.elect_leaders(now.image, request, now.full)


def alter_reassignments(
    request: AlterPartitionReassignmentsRequest,
) -> Decision[AlterPartitionReassignmentsResponse]:
    return lambda now: reassignments.alter_reassignments(now.image, request, now.unclean)


def update_features(request: UpdateFeaturesRequest) -> Decision[None]:
    return lambda now: features.update_features(now.image, request)


def create_acls(wanted: Sequence[Acl]) -> Decision[Created]:
    return lambda now: acls.create_acls(now.image, wanted)


def delete_acls(filters: Sequence[AclFilter]) -> Decision[Removed]:
    return lambda now: acls.delete_acls(now.image, filters)


def alter_scram(request: AlterUserScramCredentialsRequest) -> Decision[scram.Errors]:
    from headrace.server.cluster import scram  # Rarely used, and it brings the hashing of passwords.

    return lambda now: scram.alter_scram(now.image, request)


def create_token(
    owner: str,
    requester: str,
    renewers: Sequence[str],
    wanted_ms: int,
    now_ms: int,
    lifetimes: tokens.Lifetimes,
) -> Decision[DelegationToken]:
    return lambda now: tokens.create_token(
        now.image, owner, requester, renewers, wanted_ms, now_ms, lifetimes
    )


def renew_token(
    token_id: str | None, wanted_ms: int, now_ms: int, lifetimes: tokens.Lifetimes
) -> Decision[int]:
    return lambda now: tokens.renew_token(now.image, token_id, wanted_ms, now_ms, lifetimes)


def expire_token(token_id: str | None, period_ms: int, now_ms: int) -> Decision[int]:
    return lambda now: tokens.expire_token(now.image, token_id, period_ms, now_ms)


def unregister_broker(broker_id: int) -> Decision[None]:
    return lambda now: Outcome(None, brokers.unregister(now.image, broker_id, now.unclean))


def allocate_producer_ids(broker_id: int, broker_epoch: int) -> Decision[tuple[int, int]]:
    """The result is (first id, how many) of a block that no other broker gets."""

    def decide(now: Situation) -> Outcome[tuple[int, int]]:
        broker = now.image.brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} has registered again.")
        first = now.image.next_producer_id
        return Outcome((first, PRODUCER_ID_BLOCK), [ProducerIdsAllocated(first + PRODUCER_ID_BLOCK)])

    return decide
