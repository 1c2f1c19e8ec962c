"""The sender of a group's request, from its context."""

from __future__ import annotations

from headrace.api.context import Context
from headrace.groups.client import Client


def client_of(context: Context) -> Client:
    return Client(context.client_id or "", context.client_host, context.version)
