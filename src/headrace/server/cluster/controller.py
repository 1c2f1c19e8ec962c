"""The controller: the one broker that changes the cluster's metadata, for as long as its epoch holds.

Pure functions decide what an operation changes; the writer appends it to the store. When the epoch no longer holds, the controller
steps down: it writes nothing more, and callers that still wait get NOT_CONTROLLER.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from headrace.clock import Clock
from headrace.server.cluster import brokers, features, leaders, tokens
from headrace.server.cluster.changes import BrokerUnregistered, Change, ClusterNamed, ControllerElected
from headrace.server.cluster.ids import format_id, random_id
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.liveness import Registered, read_registrations, reconcile
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.situation import Decision, Situation
from headrace.server.cluster.store import SessionExpiredError, Store, UnavailableError
from headrace.server.cluster.writer import SequenceWriter, not_controller
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import KafkaError

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
STOP_SECONDS = 1.0

T = TypeVar("T")


class ControllerState(enum.Enum):
    """The life of a controller. It steps down once, from either of the other states."""

    LOADING = "loading"
    """Elected, and reading the metadata: it decides nothing yet."""
    ACTIVE = "active"
    STEPPED_DOWN = "stepped down"
    """Its epoch is over, or it failed: it writes nothing more."""


class Controller:
    """One term as controller, from `become_controller` until it steps down or is stopped."""

    def __init__(
        self,
        store: Store,
        broker_id: int,
        epoch: int,
        config: BrokerConfig,
        clock: Clock,
        on_step_down: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_step_down = on_step_down
        self.epoch = epoch
        self._situation = Situation(MetadataImage(), config, broker_id)
        self._writer = SequenceWriter(store, epoch, clock, self.step_down)
        self._brokers_changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._state = ControllerState.LOADING

    async def become_controller(self, image: MetadataImage) -> None:
        """Read on from `image`, announce the new controller, and bring the list of live brokers up to date."""
        await self._writer.load(image)
        registered = await self._read_registrations()
        if self._state is not ControllerState.LOADING:
            raise not_controller()
        self._state = ControllerState.ACTIVE
        for work in (self._writer.run(), self._follow_brokers(), self._balance(), self._expire_tokens()):
            task = asyncio.create_task(work)
            task.add_done_callback(self._work_ended)
            self._tasks.append(task)
        await self.decide(lambda now: self._announce(now, registered))
        log.info("broker %d is the controller, epoch %d", self._situation.controller_id, self.epoch)

    def _announce(self, now: Situation, registered: Registered) -> Outcome[None]:
        changes: list[Change] = []
        if not now.image.cluster_id:
            changes += [ClusterNamed(format_id(random_id())), *features.begin(now.image)]
        changes.append(ControllerElected(now.controller_id, self.epoch))
        announced = now.after(changes)
        changes += reconcile(announced.image, registered, announced.unclean)
        # This broker's own settings may allow unclean elections that the previous controller's did not.
        settled = now.after(changes)
        return Outcome(None, changes + leaders.elect_uncleanly(settled.image, settled.unclean))

    @property
    def image(self) -> MetadataImage:
        """Everything decided so far, including changes that are not in the store yet."""
        return self._writer.image

    @property
    def committed_offset(self) -> int:
        """The last change that is in the store."""
        return self._writer.committed_offset

    @property
    def active(self) -> bool:
        return self._state is ControllerState.ACTIVE

    @property
    def full_brokers(self) -> frozenset[int]:
        """Brokers that report a full disk."""
        return self._situation.full

    async def stop(self) -> None:
        """Step down and end the background work; the /controller node goes with the session."""
        self.step_down()
        if self._tasks:
            # Give a write that is under way, a snapshot above all, a moment to finish.
            with contextlib.suppress(TimeoutError):
                await self._clock.wait_for(asyncio.wait(self._tasks[:1]), STOP_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def step_down(self) -> None:
        """Write nothing more, and fail waiting callers with NOT_CONTROLLER."""
        if self._state is ControllerState.STEPPED_DOWN:
            return
        self._state = ControllerState.STEPPED_DOWN
        self._writer.close()
        self._on_step_down()

    def _work_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("the controller failed", exc_info=task.exception())
            self.step_down()

    async def decide(self, decision: Decision[T], validate_only: bool = False) -> T:
        """Make a decision and append its changes, unless `validate_only`; returns once the store has all that the result rests on.

        NOT_CONTROLLER when this broker is not, or ceases to be, the controller.
        """
        if not self.active:
            raise not_controller()
        now = self._now()
        outcome = decision(now)
        if now.full:
            # Whatever was decided, a broker without room leads nothing that another could lead.
            outcome = outcome.followed_by(
                brokers.move_off_full_disks(now.after(outcome.changes).image, now.full)
            )
        if not validate_only:
            self._writer.append(outcome.changes)
        # Even a result without changes may rest on changes that are not in the store yet.
        await self._writer.stored()
        if any(isinstance(change, BrokerUnregistered) for change in outcome.changes):
            # A broker that is still alive registers again.
            self._brokers_changed.set()
        return outcome.result

    def _now(self) -> Situation:
        self._situation = self._situation.at(self._writer.image)
        return self._situation

    # -- brokers coming and going

    async def _follow_brokers(self) -> None:
        while self.active:
            await self._brokers_changed.wait()
            self._brokers_changed.clear()
            try:
                await self._reconcile()
            except UnavailableError:
                self._brokers_changed.set()
                await self._clock.sleep(RETRY_SECONDS)
            except SessionExpiredError:
                return
            except KafkaError:
                if not self.active:
                    return
                raise

    async def _reconcile(self) -> None:
        registered = await self._read_registrations()
        await self.decide(lambda now: Outcome(None, reconcile(now.image, registered, now.unclean)))

    async def _read_registrations(self) -> Registered:
        registered = await read_registrations(self._store, self._brokers_changed.set)
        full = frozenset(broker_id for broker_id, (_, each) in registered.items() if each.disk_full)
        for broker_id in sorted(full ^ self._situation.full):
            log.info("broker %d %s", broker_id, "has a full disk" if broker_id in full else "has room again")
        cordoned = frozenset(broker_id for broker_id, (_, each) in registered.items() if each.cordoned)
        for broker_id in sorted(cordoned ^ self._situation.cordoned):
            log.info(
                "broker %d %s", broker_id, "is cordoned" if broker_id in cordoned else "takes replicas again"
            )
        self._situation = replace(self._situation, full=full, cordoned=cordoned)
        return registered

    async def _balance(self) -> None:
        """Now and then give leadership back to preferred leaders."""
        while self.active:
            interval = self._now().config.integer("leader.imbalance.check.interval.seconds")
            await self._clock.sleep(interval)
            with contextlib.suppress(KafkaError):
                await self.decide(_balance_leaders)

    async def _expire_tokens(self) -> None:
        """Now and then remove delegation tokens that have expired; nobody can log in with them meanwhile."""
        while self.active:
            interval = self._now().config.integer("delegation.token.expiry.check.interval.ms")
            await self._clock.sleep(interval / 1000)
            with contextlib.suppress(KafkaError):
                await self.decide(lambda now: tokens.remove_expired(now.image, self._clock.now_ms()))


def _balance_leaders(now: Situation) -> Outcome[None]:
    if not now.config.boolean("auto.leader.rebalance.enable"):
        return Outcome(None)
    tolerated = now.config.integer("leader.imbalance.per.broker.percentage")
    return Outcome(None, leaders.balance_leaders(now.image, tolerated, now.full))
