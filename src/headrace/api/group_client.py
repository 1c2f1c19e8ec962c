"""The sender of a group's request, from its context."""

from __future__ import annotations

from headrace.api.context import Context
from headrace.api.operations import TOPIC, Operation
from headrace.groups.client import Client


def client_of(context: Context) -> Client:
    client = Client(context.client_id or "", context.client_host, context.version)
    if not context.services.guarded:
        return client
    return client._replace(may_describe=lambda topic: context.may(Operation.DESCRIBE, TOPIC, topic))
