"""Effects that happen once, however often a record comes: ``Once`` with a store of ids, or ``SqlOnce``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.client.errors import require
from headrace.client.once.ids import ID_HEADER, from_fields, from_header, from_key, from_position
from headrace.client.once.once import Once
from headrace.client.once.redis import RedisStore
from headrace.client.once.store import AlreadyRunning, Claim, Store, StoreUnavailable

if TYPE_CHECKING:
    from headrace.client.once.database import SqlOnce
    from headrace.client.once.layered import LayeredStore
    from headrace.client.once.rows import update_if, upsert
    from headrace.client.once.sql import SqlStore

__all__ = [
    "ID_HEADER",
    "AlreadyRunning",
    "Claim",
    "LayeredStore",
    "Once",
    "RedisStore",
    "SqlOnce",
    "SqlStore",
    "Store",
    "StoreUnavailable",
    "from_fields",
    "from_header",
    "from_key",
    "from_position",
    "update_if",
    "upsert",
]

_SQL = {
    "LayeredStore": "layered",
    "SqlOnce": "database",
    "SqlStore": "sql",
    "update_if": "rows",
    "upsert": "rows",
}


def __getattr__(name: str) -> object:
    """What needs SQLAlchemy is imported when it is asked for."""
    if name not in _SQL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("sqlalchemy", "sql", name)
    return getattr(require(f"{__name__}.{_SQL[name]}", "sql", name), name)
