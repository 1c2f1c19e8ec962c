"""The page of one scrape, in pieces: what is looked at first, and in which order the families come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import chain

from headrace.clock import Clock
from headrace.server.api.engines import Engines
from headrace.server.cluster.changes import Change, PartitionsChanged
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.peers import Peers
from headrace.server.metrics.broker import BrokerFamilies, Survey
from headrace.server.metrics.clients import document
from headrace.server.metrics.ends import Ends
from headrace.server.metrics.groups import GroupFamilies, GroupSurvey
from headrace.server.metrics.mirrors import MirrorFamilies
from headrace.server.metrics.process import ProcessFamilies
from headrace.server.metrics.pushed import PushedFamilies, PushedSurvey
from headrace.server.metrics.requests import RequestFamilies
from headrace.server.metrics.text import Family, render
from headrace.server.metrics.topics import TopicFamilies
from headrace.server.net.acceptors import Acceptors

SLICE_SECONDS = 0.001
"""How long the page is worked on before other requests get their turn."""
PIECES_BETWEEN_LOOKS = 4


class Page:
    def __init__(
        self, engines: Engines, acceptors: Acceptors, peers: Peers, stopping: Callable[[], bool]
    ) -> None:
        self._engines = engines
        self._clock = engines.clock
        self._ends = Ends(engines.replicas, peers, engines.disk, engines.clock)
        self._unclean_elections = 0
        engines.cluster.subscribe(self._count_elections)
        self._process = ProcessFamilies()
        self._requests = RequestFamilies(acceptors.requests, engines.clock.monotonic)
        self._broker = BrokerFamilies(engines, acceptors, stopping, lambda: self._unclean_elections)
        self._topics = TopicFamilies(engines)
        self._groups = GroupFamilies(engines, self._ends)
        self._mirrors = MirrorFamilies(engines)
        self._pushed = PushedFamilies(engines.telemetry)
        self._acceptors = acceptors

    def close(self) -> None:
        self._ends.close()

    async def build(
        self, content_type: str, every_partition: bool, pushed_too: bool = False
    ) -> AsyncIterator[bytes]:
        """The page; the caller may take its time between two pieces. `pushed_too`: what clients have pushed."""
        pushed = PushedSurvey()
        if pushed_too:
            async for _ in in_slices(self._pushed.look(pushed), self._clock):
                pass
        groups = GroupSurvey()
        async for _ in in_slices(self._groups.look(groups), self._clock):
            pass
        await self._ends.look_up(groups.starts())
        await self._broker.look_at_disks()
        families = chain(self._families(groups, every_partition), self._pushed.families(pushed))
        pieces = render(families, content_type)
        async for some in in_slices(pieces, self._clock):
            if some:
                yield some.encode()
        self._ends.ask_others()

    async def clients(self, wanted: str | None) -> AsyncIterator[bytes]:
        """The page of clients, with the metrics of the one that is wanted."""
        async for some in in_slices(document(self._engines, self._acceptors, wanted), self._clock):
            if some:
                yield some.encode()

    def _families(self, groups: GroupSurvey, every_partition: bool) -> Iterator[Family]:
        survey = Survey(list(self._engines.replicas))
        yield from self._process.families()
        yield from self._broker.families(survey)
        yield from self._requests.families()
        yield from self._topics.families(survey, every_partition)
        yield from self._groups.families(groups, every_partition)
        yield from self._mirrors.families()

    def _count_elections(self, old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        """Only while this broker is the controller: over the brokers of a cluster, each counts once."""
        if not self._engines.cluster.is_controller:
            return
        for change in changes:
            if not isinstance(change, PartitionsChanged):
                continue
            before = old.topics_by_id.get(change.topic_id)
            for index, state in change.partitions.items():
                was = before.partition(index) if before is not None else None
                if state.recovering and (was is None or was.leader_epoch < state.leader_epoch):
                    self._unclean_elections += 1


async def in_slices(pieces: Iterator[str], clock: Clock) -> AsyncIterator[str]:
    """The same pieces joined, with a turn for everything else after each slice of time."""
    some: list[str] = []
    began = clock.monotonic()
    for number, piece in enumerate(pieces):
        if piece:
            some.append(piece)
        if not number % PIECES_BETWEEN_LOOKS and clock.monotonic() - began > SLICE_SECONDS:
            yield "".join(some)
            some.clear()
            await clock.sleep(0)
            began = clock.monotonic()
    yield "".join(some)
