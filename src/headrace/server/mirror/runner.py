"""One active link on one broker: finds the leaders of its partitions at the source and keeps a fetcher for each of them."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable

from headrace.clock import Clock
from headrace.server.cluster.image import MirrorLink
from headrace.server.mirror.fetcher import Callbacks, SourceFetcher
from headrace.server.mirror.options import LinkOptions
from headrace.server.mirror.position import UNKNOWN, Phase, Position
from headrace.server.mirror.reports import Report
from headrace.server.mirror.source import SourceCluster, SourceTopic
from headrace.server.mirror.throttle import LinkThrottle
from headrace.wire.errors import KafkaError

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
"""How often leaders are looked up although nothing asks for it."""
AGAIN_SECONDS = 0.2
MISSING_LOOKS = 5
"""After so many looks in a row a topic that the source does not show is taken to be gone: a broker that has just started may not know
it yet."""


class LinkRunner:
    """Owns the phase of the positions it was given."""

    def __init__(
        self,
        link: MirrorLink,
        clock: Clock,
        tell: Callable[[Report], None],
        agreed: Callable[[Position], None],
    ) -> None:
        """`tell` passes a report to the controller; `agreed` notes that the source continues a partition. SettingsError when the link's settings cannot be used."""
        self.link = link
        self._clock = clock
        self._tell = tell
        self._agreed = agreed
        self.options = LinkOptions.of(link)
        self.source = SourceCluster(self.options.connection, clock)
        self._throttle = LinkThrottle(link.throttle, clock)
        self._positions: dict[tuple[uuid.UUID, int], Position] = {}
        self._fetchers: dict[int, SourceFetcher] = {}
        self._fetched_from: dict[tuple[uuid.UUID, int], int] = {}
        self._missing: dict[str, int] = {}
        self._look = asyncio.Event()
        self._ending: set[asyncio.Task[None]] = set()
        self.trouble = ""
        """Why the source cannot be asked, as a sentence; empty while it can."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def follow(self, position: Position) -> None:
        self._positions[position.key] = position
        position.phase = Phase.UNROUTED
        self._look.set()

    def follows(self, position: Position) -> bool:
        return self._positions.get(position.key) is position

    def leave(self, position: Position) -> None:
        if self._positions.pop(position.key, None) is not None:
            self._detach(position)
            position.phase = Phase.STOPPED

    def epochs_raised(self) -> None:
        """The image has changed: partitions that waited for a leader epoch may go on."""
        for position in self._positions.values():
            if position.phase is Phase.AWAITING_EPOCH:
                self._attach(position)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for position in list(self._positions.values()):
            self.leave(position)
        stopping = [fetcher.stop() for fetcher in self._fetchers.values()]
        self._fetchers.clear()
        await asyncio.gather(*stopping, *self._ending, return_exceptions=True)
        self.source.close()

    # Finding leaders.

    async def _run(self) -> None:
        while True:
            again = LOOK_SECONDS
            self._look.clear()
            try:
                if self._positions and not await self._find_leaders():
                    again = AGAIN_SECONDS
                self.trouble = ""
            except (OSError, KafkaError) as error:
                self.complain(f"The source cannot be asked: {error}")
                again = 1.0
            except Exception as error:
                log.exception("the mirror link %s failed", self.link.name)
                self.complain(f"{type(error).__name__}: {error}")
                again = 1.0
            if again == LOOK_SECONDS:
                try:
                    await self._clock.wait_for(self._look.wait(), again)
                except TimeoutError:
                    continue
                await self._clock.sleep(
                    0.1
                )  # What asks for a look seldom comes alone, and a leader that is away is asked for again.
            else:
                await self._clock.sleep(again)

    def complain(self, trouble: str) -> None:
        trouble = trouble.rstrip(".") + "."
        if trouble != self.trouble:
            log.warning("The mirror link %s waits. %s", self.link.name, trouble)
        self.trouble = trouble

    async def _find_leaders(self) -> bool:
        """False when some partitions have no leader there now."""
        names = sorted({position.partition.topic for position in self._positions.values()})
        found = await self.source.topics(names)
        report = Report()
        complete = True
        for position in list(self._positions.values()):
            topic = found.get(position.partition.topic)
            reason = self._gone(position, topic)
            if reason is not None:
                if reason:
                    report.failed[position.partition.topic_id] = reason
                complete = False
                continue
            assert topic is not None
            index = position.partition.index
            leader, epoch = topic.leaders.get(index, UNKNOWN), topic.epochs.get(index, UNKNOWN)
            if leader < 0 or epoch < position.source_epoch:
                complete = False
                continue
            if position.phase is Phase.FETCHING and (leader, epoch) == (
                position.source_leader,
                position.source_epoch,
            ):
                continue
            position.source_leader, position.source_epoch = leader, epoch
            self._attach(position)
            if position.phase is Phase.AWAITING_EPOCH:
                report.epochs[position.partition.topic_id, index] = epoch
                complete = False
        for name in names:
            self._missing[name] = 0 if name in found else self._missing.get(name, 0) + 1
        if report:
            self._tell(report)
        return complete

    def _gone(self, position: Position, topic: SourceTopic | None) -> str | None:
        """None while the source has the topic; else why it has not, or "" while that may pass."""
        name = position.partition.topic
        if topic is None:
            if self._missing.get(name, 0) < MISSING_LOOKS:
                return ""
            return (
                f"The topic '{name}' was deleted at the source, or the link's user may not see it any more."
            )
        if topic.id != position.source_id:
            return f"The topic '{name}' was deleted and made again at the source."
        return None

    def _attach(self, position: Position) -> None:
        """Fetch it from its leader, once this cluster's leader epoch has reached the source's."""
        self._detach(position)
        if position.partition.leader_epoch < position.source_epoch:
            position.phase = Phase.AWAITING_EPOCH
            return
        position.phase = Phase.FETCHING
        node = position.source_leader
        fetcher = self._fetchers.get(node)
        if fetcher is None:
            callbacks = Callbacks(self._reroute, self._failed, self._agreed)
            fetcher = self._fetchers[node] = SourceFetcher(
                node, self.source, self._clock, self._throttle, callbacks
            )
        fetcher.follow(position)
        self._fetched_from[position.key] = node

    def _detach(self, position: Position) -> None:
        node = self._fetched_from.pop(position.key, None)
        fetcher = self._fetchers.get(node) if node is not None else None
        if fetcher is None or node is None:
            return
        fetcher.leave(position)
        if fetcher.idle:
            del self._fetchers[node]
            task = asyncio.get_running_loop().create_task(fetcher.stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _reroute(self, position: Position) -> None:
        self._detach(position)
        position.phase = Phase.UNROUTED
        self._look.set()

    def _failed(self, position: Position, reason: str) -> None:
        self._detach(position)
        position.phase = Phase.STOPPED
        position.trouble = reason
        self._tell(Report(failed={position.partition.topic_id: reason}))
