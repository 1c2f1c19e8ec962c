"""A member of a classic group."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.wire.messages.sync_group import SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols a member supports: (name, metadata), its preferred one first."""

RespondJoin = Callable[[JoinGroupResponse], None]
RespondSync = Callable[[SyncGroupResponse], None]


def offered(request: JoinGroupRequest) -> Protocols:
    """Each protocol once, however often it is named: members that support one are counted."""
    protocols: dict[str, bytes] = {}
    for each in request.protocols:
        protocols.setdefault(each.name, each.metadata)
    return tuple(protocols.items())


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member of a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """Until its first join is answered: it does not know its id yet and cannot heartbeat."""
    awaiting_join: RespondJoin | None = field(default=None, repr=False)
    awaiting_sync: RespondSync | None = field(default=None, repr=False)

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate this member prefers."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def may_be_silent(self) -> bool:
        """A member whose join or sync is parked here cannot be expected to heartbeat."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)
