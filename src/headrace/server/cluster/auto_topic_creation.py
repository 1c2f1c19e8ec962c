"""Creates topics on first use: those clients ask for, with the broker's defaults, and the internal ones as they must be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headrace.clock import Clock
from headrace.server.cluster.decisions import create_topics
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS, internal_topic
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.passed_on import Client
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

CREATE_TOPICS_VERSION = 7

PATIENCE = 2.0
"""Seconds to wait for a creation; after that the client gets LEADER_NOT_AVAILABLE and retries."""

_AS_METADATA_SAYS = {
    ErrorCode.NOT_CONTROLLER: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class AutoTopicCreation:
    def __init__(self, cluster: ClusterNode, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._creations: dict[tuple[str, ...], tuple[asyncio.Task[dict[str, ErrorCode]], float]] = {}
        """Creations under way, each with the time until which requests wait for it."""

    async def create(self, names: Sequence[str], client: Client | None = None) -> dict[str, ErrorCode]:
        """Create topics; returns an error for each one that could not be created. A controller on another broker counts them against
        the quota of the `client`.

        A client's other requests queue behind this one, so it does not wait long for a store that is away. The creation goes on, and
        retries that arrive meanwhile join it.
        """
        clock, wanted = self._clock, tuple(dict.fromkeys(names))
        if wanted not in self._creations:
            task = asyncio.get_running_loop().create_task(self._create(wanted, client))
            self._creations[wanted] = (task, clock.monotonic() + PATIENCE)
            task.add_done_callback(lambda _: self._creations.pop(wanted, None))
        task, deadline = self._creations[wanted]
        try:
            return await clock.wait_for(asyncio.shield(task), max(deadline - clock.monotonic(), 0))
        except TimeoutError:
            return dict.fromkeys(wanted, ErrorCode.LEADER_NOT_AVAILABLE)

    async def _create(self, names: Sequence[str], client: Client | None) -> dict[str, ErrorCode]:
        cluster = self._cluster
        specs = [
            internal_topic(name, cluster.config, cluster.standalone)
            if name in INTERNAL_TOPICS
            else CreatableTopic(name, -1, -1)
            for name in names
        ]
        try:
            if cluster.is_controller:
                created = await cluster.decide(create_topics(specs))
                failed = {each.name: each.error.code for each in created if each.error}
            else:
                request = CreateTopicsRequest(specs)
                reply = await cluster.ask_controller(request, CREATE_TOPICS_VERSION, client)
                failed = {each.name: ErrorCode(each.error_code) for each in reply.topics if each.error_code}
        except KafkaError:
            # The controller is about to change; the client retries.
            return dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
        return {
            name: _AS_METADATA_SAYS.get(code, code)
            for name, code in failed.items()
            if code is not ErrorCode.TOPIC_ALREADY_EXISTS
        }
