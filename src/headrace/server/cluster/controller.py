"""The controller: the one broker that changes the cluster's metadata, for as long as its epoch holds.

What each operation comes to is decided elsewhere, by pure functions; how it gets into the store is the writer's. When the epoch
no longer holds, this controller is deposed: nothing it still had to write is written, and the callers are told NOT_CONTROLLER.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from headrace.clock import Clock
from headrace.server.cluster import (
    brokers,
    config_changes,
    features,
    leaders,
    partitions,
    reassignments,
    topics,
)
from headrace.server.cluster.changes import Change, ClusterNamed, ControllerElected, ProducerIdsAllocated
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.ids import format_id, random_id
from headrace.server.cluster.image import ConfigResource, MetadataImage
from headrace.server.cluster.liveness import Registered, read_registrations, reconcile
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.store import SessionExpiredError, Store, UnavailableError
from headrace.server.cluster.topics import CreatedTopic
from headrace.server.cluster.writer import SequenceWriter
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from headrace.wire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from headrace.wire.messages.create_topics import CreatableTopic
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from headrace.wire.messages.update_features import UpdateFeaturesRequest

log = logging.getLogger(__name__)

PRODUCER_ID_BLOCK = 1000
RETRY_SECONDS = 0.2
STOP_SECONDS = 1.0

T = TypeVar("T")


class Controller:
    """One term of office, from `take_office` until it is deposed or stopped."""

    def __init__(
        self,
        store: Store,
        broker_id: int,
        epoch: int,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        on_deposed: Callable[[], None],
    ) -> None:
        self._store = store
        self._broker_id = broker_id
        self._config = config
        self._clock = clock
        self._on_deposed = on_deposed
        self.epoch = epoch
        self._writer = SequenceWriter(store, epoch, clock, self.depose)
        self._brokers_changed = asyncio.Event()
        self._full: frozenset[int] = frozenset()
        """Brokers whose registrations say that their disks are full."""
        self._tasks: list[asyncio.Task[None]] = []
        self._deposed = False

    async def take_office(self, image: MetadataImage) -> None:
        """Read on from `image`, announce the term, and bring the list of live brokers up to date."""
        writer = self._writer
        await writer.load(image)
        first: list[Change] = [] if writer.image.cluster_id else [ClusterNamed(format_id(random_id()))]
        first.append(ControllerElected(self._broker_id, self.epoch))
        registered = await self._read_registrations()
        for work in (writer.run(), self._follow_brokers(), self._balance()):
            task = asyncio.create_task(work)
            task.add_done_callback(self._work_ended)
            self._tasks.append(task)

        def announce(image: MetadataImage) -> Outcome[None]:
            begun = apply_changes(image, image.offset, first)
            changes = first + reconcile(begun, registered, self._unclean(begun))
            settled = apply_changes(image, image.offset, changes)
            # This broker's own settings may allow what those of the controller before did not.
            return Outcome(None, changes + leaders.elect_uncleanly(settled, self._unclean(settled)))

        await self._submit(announce)
        log.info("broker %d is the controller, epoch %d", self._broker_id, self.epoch)

    @property
    def image(self) -> MetadataImage:
        """The image with everything decided so far, which the store may not have yet."""
        return self._writer.image

    @property
    def committed_offset(self) -> int:
        """The last change that is in the store."""
        return self._writer.committed_offset

    @property
    def active(self) -> bool:
        return not self._deposed

    async def stop(self) -> None:
        """Leave office; the /controller node goes with the session."""
        self.depose()
        if self._tasks:
            # What is on its way to the store, a snapshot above all, is worth a moment.
            with contextlib.suppress(TimeoutError):
                await self._clock.wait_for(asyncio.wait(self._tasks[:1]), STOP_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def depose(self) -> None:
        """Write nothing more. Whoever waits is told that this is not the controller."""
        if self._deposed:
            return
        self._deposed = True
        self._writer.close()
        self._on_deposed()

    def _work_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("the controller failed", exc_info=task.exception())
            self.depose()

    # -- operations

    async def create_topics(
        self, requested: Sequence[CreatableTopic], validate_only: bool = False
    ) -> list[CreatedTopic]:
        return await self._submit(
            lambda image: topics.create_topics(image, self._config(), requested), validate_only
        )

    async def create_partitions(
        self, requested: Sequence[CreatePartitionsTopic], validate_only: bool = False
    ) -> list[CreatePartitionsTopicResult]:
        return await self._submit(lambda image: topics.create_partitions(image, requested), validate_only)

    async def delete_topics(self, topic_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, KafkaError | None]:
        return await self._submit(lambda image: topics.delete_topics(image, topic_ids))

    async def incremental_alter_configs(
        self,
        requested: Mapping[ConfigResource, Sequence[config_changes.ConfigOp]],
        validate_only: bool = False,
    ) -> config_changes.Errors:
        return await self._alter_configs(
            lambda image: config_changes.incremental_alter(image, self._config(), requested), validate_only
        )

    async def alter_configs(
        self, requested: Mapping[ConfigResource, Mapping[str, str | None]], validate_only: bool = False
    ) -> config_changes.Errors:
        return await self._alter_configs(
            lambda image: config_changes.replace_all(image, self._config(), requested), validate_only
        )

    async def _alter_configs(
        self, alter: Callable[[MetadataImage], Outcome[config_changes.Errors]], validate_only: bool
    ) -> config_changes.Errors:
        """Settings that change, and the leaders they allow."""

        def decide(image: MetadataImage) -> Outcome[config_changes.Errors]:
            outcome = alter(image)
            if config_changes.touches("unclean.leader.election.enable", outcome.changes):
                after = apply_changes(image, image.offset, outcome.changes)
                outcome.changes += leaders.elect_uncleanly(after, self._unclean(after))
            return outcome

        return await self._submit(decide, validate_only)

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        return await self._submit(
            lambda image: partitions.alter_partition(image, request, self._unclean(image), self._full)
        )

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        return await self._submit(lambda image: leaders.elect_leaders(image, request, self._full))

    async def alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return await self._submit(
            lambda image: reassignments.alter_reassignments(image, request, self._unclean(image))
        )

    async def update_features(self, request: UpdateFeaturesRequest) -> None:
        await self._submit(lambda image: features.update_features(image, request), request.validate_only)

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> tuple[int, int]:
        """(first id, how many) of a block that belongs to this broker alone."""

        def decide(image: MetadataImage) -> Outcome[tuple[int, int]]:
            broker = image.brokers.get(broker_id)
            if broker is None or broker.epoch != broker_epoch:
                raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} has registered anew.")
            first = image.next_producer_id
            return Outcome((first, PRODUCER_ID_BLOCK), [ProducerIdsAllocated(first + PRODUCER_ID_BLOCK)])

        return await self._submit(decide)

    async def unregister_broker(self, broker_id: int) -> None:
        await self._submit(
            lambda image: Outcome(None, brokers.unregister(image, broker_id, self._unclean(image)))
        )
        # One that is alive is noted again.
        self._brokers_changed.set()

    async def apply(self, decide: Callable[[MetadataImage], Outcome[T]]) -> T:
        """Any other operation: `decide` looks at the latest image and says what to change and what to answer."""
        return await self._submit(decide)

    def _unclean(self, image: MetadataImage) -> brokers.Unclean:
        """By `image`, whose settings this broker itself may not have taken yet."""
        config = self._config().with_dynamic(image.cluster_configs(), image.broker_configs(self._broker_id))
        by_default = config.boolean("unclean.leader.election.enable")

        def unclean(topic: str) -> bool:
            own = image.topic_configs(topic).get("unclean.leader.election.enable")
            return by_default if own is None else own.strip().lower() == "true"

        return unclean

    # -- brokers coming and going

    async def _follow_brokers(self) -> None:
        while not self._deposed:
            await self._brokers_changed.wait()
            self._brokers_changed.clear()
            try:
                await self._bring_up_to_date()
            except UnavailableError:
                self._brokers_changed.set()
                await self._clock.sleep(RETRY_SECONDS)
            except SessionExpiredError:
                return
            except KafkaError:
                if self._deposed:
                    return
                raise

    async def _bring_up_to_date(self) -> None:
        registered = await self._read_registrations()
        await self._submit(lambda image: Outcome(None, reconcile(image, registered, self._unclean(image))))

    async def _read_registrations(self) -> Registered:
        registered = await read_registrations(self._store, self._brokers_changed.set)
        full = frozenset(broker_id for broker_id, (_, each) in registered.items() if each.disk_full)
        for broker_id in sorted(full ^ self._full):
            log.info("broker %d %s", broker_id, "has a full disk" if broker_id in full else "has room again")
        self._full = full
        return registered

    async def _balance(self) -> None:
        """Now and then give leadership back to the brokers that should have it."""
        while not self._deposed:
            await self._clock.sleep(self._config().integer("leader.imbalance.check.interval.seconds"))
            config = self._config()
            if config.boolean("auto.leader.rebalance.enable"):
                tolerated = config.integer("leader.imbalance.per.broker.percentage")
                with contextlib.suppress(KafkaError):
                    await self._bring_leaders_home(tolerated)

    async def _bring_leaders_home(self, tolerated_percentage: int) -> None:
        await self._submit(
            lambda image: Outcome(None, leaders.balance_leaders(image, tolerated_percentage, self._full))
        )

    async def _submit(self, decide: Callable[[MetadataImage], Outcome[T]], validate_only: bool = False) -> T:
        def decide_with_room(image: MetadataImage) -> Outcome[T]:
            """Whatever is decided, nobody without room leads what another could."""
            outcome = decide(image)
            if self._full:
                after = apply_changes(image, image.offset, outcome.changes)
                outcome.changes = [*outcome.changes, *brokers.relieve(after, self._full)]
            return outcome

        return await self._writer.submit(decide_with_room, validate_only)
