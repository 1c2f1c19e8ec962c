"""Which limit a client has: the most specific of Kafka's eight levels that names it decides.

A level also says who shares the limit: one of a user and a client id counts that pair, one of a user counts all the user's
clients together, one of a client id counts all users with that id. A default gives each user or client id a limit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from headrace.server.cluster.image import QuotaEntity
from headrace.server.cluster.quota_changes import CLIENT_ID, USER

Key = tuple[str, str]
"""(user, client id) of those who share a limit; empty where it does not matter."""


class _Part(Enum):
    NAMED = auto()
    DEFAULT = auto()
    ANY = auto()
    """The limit does not look at it."""


_LEVELS = (
    (_Part.NAMED, _Part.NAMED),
    (_Part.NAMED, _Part.DEFAULT),
    (_Part.NAMED, _Part.ANY),
    (_Part.DEFAULT, _Part.NAMED),
    (_Part.DEFAULT, _Part.DEFAULT),
    (_Part.DEFAULT, _Part.ANY),
    (_Part.ANY, _Part.NAMED),
    (_Part.ANY, _Part.DEFAULT),
)
"""(user, client id), the most specific first."""


class _Level(NamedTuple):
    names_user: bool
    names_client: bool
    by_user: bool
    by_client: bool
    limits: dict[Key, float]


class QuotaLimits:
    """The limits of one kind of quota, as the cluster's metadata has them."""

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]], kind: str) -> None:
        found: dict[tuple[_Part, _Part], dict[Key, float]] = {}
        for entity, values in quotas.items():
            parts = dict(entity)
            if kind in values and (USER in parts or CLIENT_ID in parts):
                level = _part(parts, USER), _part(parts, CLIENT_ID)
                key = parts.get(USER) or "", parts.get(CLIENT_ID) or ""
                found.setdefault(level, {})[key] = values[kind]
        self._levels = [
            _Level(
                user is _Part.NAMED,
                client is _Part.NAMED,
                user is not _Part.ANY,
                client is not _Part.ANY,
                found[user, client],
            )
            for user, client in _LEVELS
            if (user, client) in found
        ]

    def __bool__(self) -> bool:
        return bool(self._levels)

    def find(self, user: str, client_id: str) -> tuple[Key, float] | None:
        """Who shares the client's limit, and the limit. A client without an id has only the limits of its user."""
        for level in self._levels:
            if level.by_client and not client_id:
                continue
            named = user if level.names_user else "", client_id if level.names_client else ""
            limit = level.limits.get(named)
            if limit is not None:
                return (user if level.by_user else "", client_id if level.by_client else ""), limit
        return None


def _part(parts: Mapping[str, str | None], kind: str) -> _Part:
    if kind not in parts:
        return _Part.ANY
    return _Part.DEFAULT if parts[kind] is None else _Part.NAMED
