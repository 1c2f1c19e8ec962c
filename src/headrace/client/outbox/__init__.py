"""Outboxes for producers that must skip nothing: a journal on disk or a SQL table, and the relay to Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.client.errors import require
from headrace.client.outbox.entry import Entry, OutboxError
from headrace.client.outbox.file import FileOutbox
from headrace.client.outbox.relay import Relay

if TYPE_CHECKING:
    from headrace.client.outbox.sql import SqlOutbox

__all__ = ["Entry", "FileOutbox", "OutboxError", "Relay", "SqlOutbox"]


def __getattr__(name: str) -> object:
    """What needs SQLAlchemy is imported when it is asked for."""
    if name != "SqlOutbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("sqlalchemy", "sql", name)
    return require(f"{__name__}.sql", "sql", name).SqlOutbox
