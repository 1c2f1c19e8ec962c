"""Routing: which broker a request goes to, and asking again while a coordinator is moving or loading."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headrace.cli.raw.refused import RequestRefused, check
from headrace.link.cluster import GROUP
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.schema import Request, Response

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

R = TypeVar("R", bound=Response)
_PATIENCE = 15.0
_PASSING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


def find_coordinator(cluster: Cluster, key: str, kind: int = GROUP) -> int:
    """The id of the broker that coordinates a group, or a transactional id."""
    with cluster.broker() as broker:
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        answer = broker.ask(request)
    found = answer.coordinators[0] if answer.coordinators else answer
    check(found.error_code, found.error_message)
    return found.node_id


def ask_coordinator(
    cluster: Cluster,
    key: str,
    request: Request[R],
    error_of: Callable[[R], int],
    kind: int = GROUP,
) -> R:
    """Ask the broker that coordinates a group or a transactional id; waits while the cluster still makes up its
    mind who that is."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            with cluster.broker(find_coordinator(cluster, key, kind)) as broker:
                answer = broker.ask(request)
            if error_of(answer) not in _PASSING:
                return answer
            check(error_of(answer))
        except RequestRefused as refused:
            if refused.error not in _PASSING or time.monotonic() > deadline:
                raise
        time.sleep(0.1)
