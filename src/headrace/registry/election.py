"""Which instance writes: the members of a group of protocol type `sr` agree, as Confluent's and Karapace's instances do.

The group's own leader chooses: of the instances that may write, the one whose address sorts first. Everybody is told the same.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.link.cluster import GROUP, Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import KafkaSettings
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

log = logging.getLogger("headrace.registry")

PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
_SAME_ADDRESS = 1
_REBALANCE = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
)
_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance as the others reach it."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def as_document(self) -> dict[str, Any]:
        return {
            "version": 1,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
        }

    @classmethod
    def from_document(cls, document: Any) -> Instance:
        return cls(
            str(document["host"]),
            int(document["port"]),
            str(document.get("scheme") or "http"),
            bool(document.get("master_eligibility", True)),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the group agreed on."""

    leader: Instance | None
    is_me: bool
    same_address: bool = False
    """Two instances say that they are reached at one address, so nothing can be forwarded."""


def choose(members: dict[str, Instance]) -> tuple[str, Instance] | None:
    """The member that is to write; None when none may."""
    able = [(each.url, member, each) for member, each in members.items() if each.eligible]
    if not able:
        return None
    _, member, instance = min(able, key=lambda each: each[:2])
    return member, instance


class Election:
    """A thread that is a member of the group. Tells of each verdict, and None as soon as it no longer holds."""

    def __init__(
        self,
        settings: KafkaSettings,
        group: str,
        instance: Instance,
        session: float,
        tell: Callable[[Verdict | None], None],
    ) -> None:
        self._settings = settings
        self._cluster = Cluster(settings)
        self._group = group
        self._instance = instance
        self._session = session
        self._tell = tell
        self._member, self._generation = "", -1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-registry-election", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leave, so that another takes over at once."""
        self._stop.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._tell(self._join())
                self._stay()
            except (BrokerUnavailable, KafkaError, ValueError) as error:
                if isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member = ""
                elif not (isinstance(error, KafkaError) and error.code in _REBALANCE):
                    log.warning("the election of the instance that writes: %s", error)
                    self._stop.wait(_PAUSE)
            if not self._stop.is_set():
                self._tell(None)
        self._leave()
        self._cluster.close()

    def _join(self) -> Verdict:
        metadata = json.dumps(self._instance.as_document(), separators=(",", ":")).encode()
        joined = self._try_to_join(metadata)
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == joined.member_id:
            assignments = self._assign(joined)
        synced = self._cluster.call_coordinator(
            GROUP,
            self._group,
            SyncGroupRequest(
                self._group,
                self._generation,
                self._member,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=assignments,
            ),
            lambda answer: answer.error_code,
            self._session,
        )
        document = json.loads(bytes(synced.assignment) or b"{}")
        identity = document.get("master_identity")
        same_address = document.get("error") == _SAME_ADDRESS
        if same_address:
            log.error(
                "two instances of the registry say that they are reached at one address: set host.name of each (--advertise)"
            )
        leader = Instance.from_document(identity) if identity else None
        return Verdict(leader, document.get("master") == self._member, same_address)

    def _try_to_join(self, metadata: bytes) -> JoinGroupResponse:
        while True:
            request = JoinGroupRequest(
                self._group,
                int(self._session * 1000),
                int(self._session * 1000),
                self._member,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(PROTOCOL, metadata)],
            )
            reply = self._cluster.coordinator(GROUP, self._group).call(request)
            code = ErrorCode(reply.error_code)
            if code == ErrorCode.NONE:
                self._member, self._generation = reply.member_id, reply.generation_id
                return reply
            if code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member = reply.member_id
                continue
            if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._cluster.close()
                self._cluster = Cluster(self._settings)
            if code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                raise KafkaError(
                    code,
                    f"the group {self._group} is used for something else; set another schema.registry.group.id",
                )
            raise KafkaError(code, f"joining the group {self._group} failed: {code.name}")

    def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        members = {
            each.member_id: Instance.from_document(json.loads(bytes(each.metadata)))
            for each in joined.members
        }
        chosen = choose(members)
        urls = {each.url for each in members.values()}
        document = {
            "version": 1,
            "error": _SAME_ADDRESS if len(urls) < len(members) else 0,
            "master": chosen[0] if chosen is not None else None,
            "master_identity": chosen[1].as_document() if chosen is not None else None,
        }
        assignment = json.dumps(document, separators=(",", ":")).encode()
        return [SyncGroupRequestAssignment(member, assignment) for member in members]

    def _stay(self) -> None:
        """Send heartbeats until the group changes. The agreement holds for one session timeout after the last answered heartbeat."""
        heard = time.monotonic()
        while not self._stop.wait(self._session / 5):
            try:
                reply = self._cluster.coordinator(GROUP, self._group).call(
                    HeartbeatRequest(self._group, self._generation, self._member)
                )
                code = ErrorCode(reply.error_code)
                if code in _REBALANCE:
                    raise KafkaError(code, code.name)
                if code == ErrorCode.NONE:
                    heard = time.monotonic()
                    continue
            except BrokerUnavailable:
                pass
            self._cluster.close()
            self._cluster = Cluster(self._settings)
            if time.monotonic() > heard + self._session:
                raise BrokerUnavailable(
                    f"the coordinator of the group {self._group} has not answered for a session"
                )

    def _leave(self) -> None:
        if self._member:
            request = LeaveGroupRequest(
                self._group, self._member, [MemberIdentity(self._member, None, "the registry stops")]
            )
            with contextlib.suppress(BrokerUnavailable, KafkaError):
                self._cluster.coordinator(GROUP, self._group).call(request)
