"""The client behind a group request, from its context, and whether its protocol is enabled."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.groups.client import Client
from headrace.server.security.operations import TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError


def client_of(context: Context) -> Client:
    client = Client(context.client_id or "", context.client_host, context.version)
    if not context.engines.guarded:
        return client
    return client._replace(may_describe=lambda topic: context.may(Operation.DESCRIBE, TOPIC, topic))


def require_protocol(context: Context) -> None:
    """UNSUPPORTED_VERSION where the consumer protocol is switched off."""
    if "consumer" not in context.engines.config.list("group.coordinator.rebalance.protocols"):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The consumer group protocol is not among group.coordinator.rebalance.protocols.",
        )
