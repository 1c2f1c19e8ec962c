"""The brokers of a cluster: which there are, and removing one that will not come back."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.client.administration.errors import check
from headrace.client.administration.session import Session
from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None
    live: bool


@dataclass(frozen=True, slots=True)
class Description:
    cluster_id: str
    controller: int | None
    brokers: list[Broker]


def describe(session: Session) -> Description:
    """The brokers, including those that are down where the cluster reports them."""
    answer = session.call(DescribeClusterRequest(include_fenced_brokers=True))
    check(answer.error_code, answer.error_message)
    brokers = [
        Broker(each.broker_id, each.host, each.port, each.rack, not each.is_fenced)
        for each in sorted(answer.brokers, key=lambda each: each.broker_id)
    ]
    controller = answer.controller_id if answer.controller_id >= 0 else None
    return Description(answer.cluster_id, controller, brokers)


def unregister(session: Session, broker: int) -> None:
    answer = session.call(UnregisterBrokerRequest(broker))
    check(answer.error_code, answer.error_message)
