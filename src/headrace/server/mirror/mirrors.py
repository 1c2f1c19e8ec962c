"""The mirror links of one broker: which of its partitions follow a source, and what is left to do when they are failed over.

It follows the cluster's image. A broker without links has nothing of this running.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Coroutine, Iterator, Sequence

from headrace.clock import Clock
from headrace.link.errors import SettingsError
from headrace.server.cluster.auto_topic_creation import AutoTopicCreation
from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import (
    LinkState,
    MetadataImage,
    MirroredTopic,
    MirrorState,
    Topic,
)
from headrace.server.cluster.internal_topics import CONSUMER_OFFSETS
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.peers import Peers
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.mirror.failover import abort_open_transactions, last_look, report_of
from headrace.server.mirror.groups import GroupFollower
from headrace.server.mirror.position import Position
from headrace.server.mirror.reports import Report, note
from headrace.server.mirror.runner import LinkRunner
from headrace.server.mirror.topics import TopicFollower
from headrace.server.replica.partition import Partition
from headrace.server.replica.replicas import Replicas
from headrace.wire.errors import KafkaError
from headrace.wire.messages.report_mirrors import ReportMirrorsRequest

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
REPORT_VERSION = 0

Key = tuple[uuid.UUID, int]


class RunningLink:
    """What one active link has running on this broker."""

    def __init__(self, runner: LinkRunner, topics: TopicFollower, groups: GroupFollower) -> None:
        self.runner = runner
        self.topics = topics
        self.groups = groups
        self.tasks: list[asyncio.Task[None]] = []

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.runner.stop()


class Mirrors:
    def __init__(
        self,
        cluster: ClusterNode,
        replicas: Replicas,
        groups: GroupCoordinator,
        peers: Peers,
        creation: AutoTopicCreation,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._replicas = replicas
        self._groups = groups
        self._peers = peers
        self._creation = creation
        self._clock = clock
        self.positions: dict[Key, Position] = {}
        """Of the partitions that this broker leads and that are not failed over."""
        self.running: dict[str, RunningLink] = {}
        self.broken: dict[str, str] = {}
        """Links whose settings cannot be used on this broker, and why."""
        self._looked_at: set[Key] = set()
        """Partitions whose source was asked for its end, for a failover."""
        self._settled: dict[Key, int] = {}
        """Partitions that were failed over, by the leader epoch in which open transactions were looked for."""
        self._work = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._cluster.subscribe(self._changed)
        self._keep(self._follow_up())
        self._apply()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        running, self.running = list(self.running.values()), {}
        await asyncio.gather(*(each.stop() for each in running))

    def positions_of(self, link: str) -> Iterator[Position]:
        mirrored = self._cluster.image.mirrored
        for (topic_id, _), position in self.positions.items():
            if topic_id in mirrored and mirrored[topic_id].link == link:
                yield position

    # Following the image.

    def _changed(self, old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        if new.links or new.mirrored or old.links or old.mirrored:
            self._apply()

    def _apply(self) -> None:
        image = self._cluster.image
        self._follow_links(image)
        wanted: dict[Key, tuple[Partition, MirroredTopic]] = {}
        for topic_id, mirrored in image.mirrored.items():
            if mirrored.read_only:
                for partition in self._led(image.topics_by_id[topic_id]):
                    wanted[topic_id, partition.index] = partition, mirrored
        for key in [key for key in self.positions if key not in wanted]:
            self._drop(key)
        for key, (partition, mirrored) in wanted.items():
            position = self.positions.get(key)
            if position is not None and (
                position.partition is not partition or position.source_id != mirrored.source_id
            ):
                self._drop(key)
                position = None
            if position is None:
                position = self.positions[key] = Position(partition, mirrored.source_id)
            self._follow(position, mirrored)
        for running in self.running.values():
            running.runner.epochs_raised()
        self._looked_at &= wanted.keys()
        self._work.set()

    def _led(self, topic: Topic) -> Iterator[Partition]:
        for index, state in enumerate(topic.partitions):
            if state.leader != self._cluster.broker_id:
                continue
            try:
                partition = self._replicas.find(topic.id.bytes, index, by_id=True)
            except KafkaError:
                self._clock.call_later(1.0, self._apply)  # Its log is being made.
                continue
            if partition.is_leader:
                yield partition

    def _follow(self, position: Position, mirrored: MirroredTopic) -> None:
        running = self.running.get(mirrored.link)
        followed = running is not None and running.runner.follows(position)
        position.discards = mirrored.state is MirrorState.DISCARDING
        if running is not None and mirrored.state in (MirrorState.MIRRORING, MirrorState.DISCARDING):
            if not followed:
                position.trouble = ""
                position.agreed = False
                running.runner.follow(position)
        elif running is not None and followed:
            running.runner.leave(position)

    def _drop(self, key: Key) -> None:
        position = self.positions.pop(key)
        for running in self.running.values():
            running.runner.leave(position)

    def _follow_links(self, image: MetadataImage) -> None:
        for name, running in list(self.running.items()):
            link = image.links.get(name)
            if link is not running.runner.link:
                del self.running[name]
                # Its fetches may still be answered: a position that stopped takes nothing in.
                for position in self.positions_of(name):
                    running.runner.leave(position)
                self._keep(running.stop())
        for name in self.broken.keys() - image.links.keys():
            del self.broken[name]
        for name, link in image.links.items():
            if name in self.running or link.state is not LinkState.ACTIVE:
                continue
            try:
                runner = LinkRunner(link, self._clock, self._tell, lambda _: self._work.set())
            except (SettingsError, KafkaError) as error:
                if self.broken.get(name) != str(error):
                    log.error("The mirror link %s cannot work on this broker. %s", name, error)
                self.broken[name] = str(error)
                continue
            self.broken.pop(name, None)
            source = runner.source
            self.running[name] = started = RunningLink(
                runner,
                TopicFollower(link, source, self._cluster, self._clock),
                GroupFollower(link, source, self._cluster, self._replicas, self._groups, self._peers),
            )
            loop = asyncio.get_running_loop()
            started.tasks = [
                loop.create_task(self._follow_topics(started)),
                loop.create_task(self._follow_groups(started)),
            ]

    async def _follow_topics(self, running: RunningLink) -> None:
        seconds = running.runner.options.topics_seconds
        while True:
            if self._cluster.is_controller:
                try:
                    await running.topics.look(seconds)
                    running.runner.trouble = ""
                except (OSError, KafkaError) as error:
                    running.runner.complain(f"The source cannot be asked: {error}")
                except Exception:
                    log.exception(
                        "following the topics of the mirror link %s failed", running.runner.link.name
                    )
            await self._clock.sleep(seconds)

    async def _follow_groups(self, running: RunningLink) -> None:
        if not running.runner.link.groups:
            return
        seconds = running.runner.options.groups_seconds
        while True:
            try:
                if CONSUMER_OFFSETS not in self._cluster.image.topics:
                    await self._creation.create([CONSUMER_OFFSETS])
                await running.groups.look()
            except (OSError, KafkaError) as error:
                log.info("the groups of the mirror link %s: %s", running.runner.link.name, error)
            except Exception:
                log.exception("following the groups of the mirror link %s failed", running.runner.link.name)
            await self._clock.sleep(seconds)

    # What leaders have to do.

    async def _follow_up(self) -> None:
        """Report ends, and end transactions, whenever the image has changed and until nothing is left to do."""
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                if not await self._take_steps():
                    self._work.set()
            except Exception:
                log.exception("failing over on this broker failed")
                self._work.set()
            if self._work.is_set():
                await self._clock.sleep(RETRY_SECONDS)

    async def _take_steps(self) -> bool:
        """False while something is left to do."""
        image, done = self._cluster.image, True
        ending: dict[str, list[Position]] = {}
        agreed: dict[uuid.UUID, list[int]] = {}
        for topic_id, mirrored in image.mirrored.items():
            if mirrored.state is MirrorState.FAILING_OVER:
                for (mine, index), position in self.positions.items():
                    if mine == topic_id and index not in mirrored.ends:
                        ending.setdefault(mirrored.link, []).append(position)
            elif mirrored.state is MirrorState.DISCARDING:
                for (mine, index), position in self.positions.items():
                    if mine == topic_id and index not in mirrored.agreed and position.agreed:
                        # Not before the others have cut it off, too: one of them may lead next.
                        if position.partition.is_whole:
                            agreed.setdefault(topic_id, []).append(index)
                        done = False
            elif mirrored.state is MirrorState.FAILED_OVER:
                done = self._settle(image.topics_by_id[topic_id], mirrored) and done
        if agreed:
            await self._report(Report(agreed=agreed))
        for name, positions in ending.items():
            link = image.links.get(name)
            new = [each for each in positions if self._key(each) not in self._looked_at]
            if new and link is not None:
                self._looked_at |= {self._key(each) for each in new}
                await last_look(link, new, self._clock)
            now_ms = self._clock.now_ms()
            reports = [report_of(position, now_ms) for position in positions]
            report = Report(ends=[each for each in reports if each is not None])
            if report:
                await self._report(report)
            done = False
        return done

    @staticmethod
    def _key(position: Position) -> Key:
        return position.partition.topic_id, position.partition.index

    def _settle(self, topic: Topic, mirrored: MirroredTopic) -> bool:
        """End what the source left open; once in each leader epoch, since a leader may have died over it."""
        done = True
        for partition in self._led(topic):
            key = topic.id, partition.index
            if self._settled.get(key) == partition.leader_epoch:
                continue
            try:
                abort_open_transactions(partition, mirrored, self._clock.now_ms())
                self._settled[key] = partition.leader_epoch
            except KafkaError as error:
                log.warning("%s: ending open transactions failed: %s", partition, error)
                done = False
        return done

    def _tell(self, report: Report) -> None:
        self._keep(self._report(report))

    async def _report(self, report: Report) -> None:
        """Tell the controller; what it does not hear is found again and told again."""
        cluster = self._cluster
        try:
            if cluster.is_controller:
                await cluster.decide(note(report))
            else:
                reply = await cluster.ask_controller(ReportMirrorsRequest(report.to_json()), REPORT_VERSION)
                if reply.error_code:
                    log.info("the controller refused a report of mirrors: %s", reply.error_message)
        except (KafkaError, OSError) as error:
            log.info("the controller does not take a report of mirrors: %s", error)

    def _keep(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
