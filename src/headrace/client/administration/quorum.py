"""Which node is the controller. A Kafka broker in KRaft mode names any live broker in its metadata; its quorum knows."""

from __future__ import annotations

from headrace.client.administration.brokers import Description
from headrace.client.administration.errors import Refused, Unreachable, check
from headrace.client.administration.session import Session
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

_METADATA = "__cluster_metadata"
_NOBODY = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
)


def controller(session: Session, description: Description) -> int | None:
    """None when there is none; ``description`` is what the brokers have just said."""
    if description.controller is None:
        return None
    try:
        answer = session.call(DescribeQuorumRequest([TopicData(_METADATA, [PartitionData(0)])]))
        check(answer.error_code, answer.error_message)
        [partition] = answer.topics[0].partitions
        check(partition.error_code, partition.error_message)
    except Unreachable:
        return None  # brokers pass the question on to the controller, and it did not answer
    except Refused as refused:
        if refused.code == ErrorCode.UNSUPPORTED_VERSION:
            return description.controller  # no quorum: what the brokers say is so
        if refused.code in _NOBODY:
            return None
        raise
    return partition.leader_id if partition.leader_id >= 0 else None
