"""The controller: the one broker that changes the cluster's metadata, for as long as its epoch holds.

An operation is decided against the image with everything already queued applied, so operations need not wait for one another;
its answer is given once its changes are in the store. Every append checks the controller's epoch in the same transaction.
When that fails, this controller is deposed: nothing it still had queued is written, and the callers are told NOT_CONTROLLER.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from headrace.clock import Clock
from headrace.cluster import brokers, config_changes, features, leaders, partitions, reassignments, topics
from headrace.cluster.changes import Change, ClusterNamed, ControllerElected, ProducerIdsAllocated
from headrace.cluster.differences import apply_changes
from headrace.cluster.ids import format_id, random_id
from headrace.cluster.image import ConfigResource, MetadataImage
from headrace.cluster.outcome import Outcome
from headrace.cluster.registration import BROKER_IDS, Registration
from headrace.cluster.sequence import (
    CONTROLLER_EPOCH,
    SNAPSHOT_EVERY,
    Head,
    append,
    change_path,
    load,
    read_head,
    split,
    write_snapshot,
)
from headrace.cluster.store import (
    ConflictError,
    Create,
    SessionExpiredError,
    SetData,
    Store,
    StoreError,
    UnavailableError,
    Watch,
)
from headrace.cluster.topics import CreatedTopic
from headrace.config.broker import BrokerConfig
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

CONTROLLER = "/controller"
PRODUCER_ID_BLOCK = 1000
RETRY_SECONDS = 0.2
STOP_SECONDS = 1.0

T = TypeVar("T")


async def elect(store: Store, broker_id: int, watch: Watch) -> int | None:
    """Try to become the controller.

    The new epoch, which is the version of /controller_epoch, when it worked; None when another broker holds the office, and then
    `watch` is told when that ends.
    """
    while True:
        holder = await store.get(CONTROLLER, watch)
        known = await store.get(CONTROLLER_EPOCH)
        if known is None:
            raise StoreError(f"The store has no {CONTROLLER_EPOCH}; it was not set up for Headrace.")
        if holder is not None:
            epoch = int(json.loads(holder[0])["epoch"])
            # This session can hold the office without knowing: when it won, the store went away before it said so.
            mine = holder[1].owner == store.session_id and known[1].version == epoch
            return epoch if mine else None
        epoch = known[1].version + 1
        claim = json.dumps({"version": 1, "brokerid": broker_id, "epoch": epoch}).encode()
        try:
            await store.commit(
                [
                    Create(CONTROLLER, claim, ephemeral=True),
                    SetData(CONTROLLER_EPOCH, str(epoch).encode(), known[1].version),
                ]
            )
        except ConflictError:
            continue
        return epoch


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
        self.image = MetadataImage()
        """The image with everything decided so far, which the store may not have yet."""
        self._head = Head()
        self._queue: list[bytes] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._wakeup = asyncio.Event()
        self._brokers_changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._deposed = False

    async def take_office(self, image: MetadataImage) -> None:
        """Read on from `image`, announce the term, and bring the list of live brokers up to date."""
        self.image, self._head = await load(self._store, image)
        first: list[Change] = [] if self.image.cluster_id else [ClusterNamed(format_id(random_id()))]
        first.append(ControllerElected(self._broker_id, self.epoch))
        registered = await self._read_registrations()
        for work in (self._write(), self._follow_brokers(), self._balance()):
            task = asyncio.create_task(work)
            task.add_done_callback(self._work_ended)
            self._tasks.append(task)
        await self._submit(lambda image: Outcome(None, first + self._reconcile(image, registered, first)))
        log.info("broker %d is the controller, epoch %d", self._broker_id, self.epoch)

    @property
    def committed_offset(self) -> int:
        """The last change that is in the store."""
        return self._head.offset

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
        self._queue.clear()
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(_not_controller())
        self._waiting.clear()
        self._wakeup.set()
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
        return await self._submit(
            lambda image: config_changes.incremental_alter(image, self._config(), requested), validate_only
        )

    async def alter_configs(
        self, requested: Mapping[ConfigResource, Mapping[str, str | None]], validate_only: bool = False
    ) -> config_changes.Errors:
        return await self._submit(
            lambda image: config_changes.replace_all(image, self._config(), requested), validate_only
        )

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        return await self._submit(
            lambda image: partitions.alter_partition(image, request, self._unclean(image))
        )

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        return await self._submit(lambda image: leaders.elect_leaders(image, request))

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
        by_default = self._config().boolean("unclean.leader.election.enable")

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
                await self._bring_up_to_date(await self._read_registrations())
            except UnavailableError:
                self._brokers_changed.set()
                await self._clock.sleep(RETRY_SECONDS)
            except (SessionExpiredError, KafkaError):
                return

    async def _bring_up_to_date(self, registered: Mapping[int, tuple[int, Registration]]) -> None:
        await self._submit(lambda image: Outcome(None, self._reconcile(image, registered, [])))

    async def _read_registrations(self) -> dict[int, tuple[int, Registration]]:
        """The live brokers: id to (epoch, what it says); any change of them wakes `_follow_brokers`."""
        registered: dict[int, tuple[int, Registration]] = {}
        for name in await self._store.children(BROKER_IDS, self._brokers_changed.set):
            found = await self._store.get(f"{BROKER_IDS}/{name}", self._brokers_changed.set)
            if found is not None:
                data, stat = found
                registered[int(name)] = (stat.created, Registration.decode(int(name), data))
        return registered

    def _reconcile(
        self,
        image: MetadataImage,
        registered: Mapping[int, tuple[int, Registration]],
        before: Sequence[Change],
    ) -> list[Change]:
        """What it takes to make the image say who is alive. Those who went come first, then those who came."""
        image = apply_changes(image, image.offset, before)
        changes: list[Change] = []

        def note(made: list[Change]) -> None:
            nonlocal image
            changes.extend(made)
            image = apply_changes(image, image.offset, made)

        unclean = self._unclean(image)
        note(brokers.fence(image, _gone(image, registered), unclean))
        note(brokers.register(image, _came(image, registered), unclean))
        for broker_id, (_, registration) in registered.items():
            if registration.stopping and not image.brokers[broker_id].in_controlled_shutdown:
                outcome = brokers.begin_shutdown(image, broker_id, unclean)
                log.info(
                    "broker %d is stopping; %d partition(s) have no other leader", broker_id, outcome.result
                )
                note(outcome.changes)
        return changes

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
        await self._submit(lambda image: Outcome(None, leaders.balance_leaders(image, tolerated_percentage)))

    # -- writing

    async def _submit(self, decide: Callable[[MetadataImage], Outcome[T]], validate_only: bool = False) -> T:
        if self._deposed:
            raise _not_controller()
        outcome = decide(self.image)
        if not validate_only and outcome.changes:
            pieces = list(split(outcome.changes))
            self.image = apply_changes(self.image, self.image.offset + len(pieces), outcome.changes)
            self._queue.extend(pieces)
        # Even an answer without changes may rest on changes that are not in the store yet.
        if self.image.offset > self._head.offset:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self.image.offset, future))
            self._wakeup.set()
            await future
        return outcome.result

    async def _write(self) -> None:
        """Append what is queued, in order; snapshot now and then."""
        while not self._deposed:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._queue and not self._deposed:
                pieces, self._queue = self._queue, []
                try:
                    await self._append(pieces)
                except (ConflictError, SessionExpiredError) as error:
                    log.warning("broker %d is no longer the controller (%s)", self._broker_id, error)
                    self.depose()
                    return
                self._answer()
            if not self._deposed and self._head.offset - self._head.snapshot >= SNAPSHOT_EVERY:
                await self._snapshot()

    async def _append(self, pieces: list[bytes]) -> None:
        """Append once and only once, also when the store goes away in the middle."""
        while pieces:
            try:
                self._head = await append(self._store, self._head, self.epoch, pieces)
                return
            except UnavailableError:
                await self._clock.sleep(RETRY_SECONDS)
                pieces = await self._not_yet_written(pieces)

    async def _not_yet_written(self, pieces: list[bytes]) -> list[bytes]:
        """After a transaction of unknown fate: look how far it came, without assuming that it was us who wrote."""
        while not self._deposed:
            try:
                head = await read_head(self._store)
                written = head.offset - self._head.offset
                for number in range(written):
                    found = await self._store.get(change_path(self._head.offset + 1 + number))
                    if found is None or number >= len(pieces) or found[0] != pieces[number]:
                        raise ConflictError(0, change_path(self._head.offset + 1 + number))
                self._head = head
                return pieces[written:]
            except UnavailableError:
                await self._clock.sleep(RETRY_SECONDS)
        return []

    def _answer(self) -> None:
        done = [entry for entry in self._waiting if entry[0] <= self._head.offset]
        self._waiting = [entry for entry in self._waiting if entry[0] > self._head.offset]
        for _, future in done:
            if not future.done():
                future.set_result(None)

    async def _snapshot(self) -> None:
        if self._queue or self.image.offset != self._head.offset:
            self._wakeup.set()
            return
        try:
            self._head = await write_snapshot(self._store, self._head, self.epoch, self.image)
        except UnavailableError:
            # The next change tries again, from what the store then says.
            self._head = await self._reread_head()
        except (ConflictError, SessionExpiredError) as error:
            log.warning("broker %d is no longer the controller (%s)", self._broker_id, error)
            self.depose()

    async def _reread_head(self) -> Head:
        while True:
            try:
                return await read_head(self._store)
            except UnavailableError:
                await self._clock.sleep(RETRY_SECONDS)


def _gone(image: MetadataImage, registered: Mapping[int, tuple[int, Registration]]) -> list[int]:
    """Brokers that went. One that is back already went too: between its two lives it led nothing."""
    gone = []
    for broker_id, broker in image.brokers.items():
        epoch = registered[broker_id][0] if broker_id in registered else None
        if broker.fenced or epoch == broker.epoch:
            continue
        log.info("broker %d is gone", broker_id)
        if epoch is None or len(image.brokers) > 1:  # A broker that is all there is leads on.
            gone.append(broker_id)
    return gone


def _came(image: MetadataImage, registered: Mapping[int, tuple[int, Registration]]) -> list[brokers.Arrival]:
    """Brokers that registered since `image`."""
    came = []
    for broker_id, (epoch, registration) in registered.items():
        known = image.brokers.get(broker_id)
        if known is None or known.fenced or known.epoch != epoch:
            log.info("broker %d registered, epoch %d", broker_id, epoch)
            # Data of a life before the last one known is an old copy, put in the place of what was lost.
            old_copy = known is not None and 0 <= registration.previous_epoch < known.epoch
            came.append(
                brokers.Arrival(
                    registration.broker(epoch),
                    registration.kept_its_data and not old_copy,
                    registration.stopped_cleanly,
                )
            )
    return came


def _not_controller() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")
