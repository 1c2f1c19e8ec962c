"""A broker's membership of the cluster: it registers, stands for controller, and follows the change sequence.

Owns the broker's `image`. Listeners are called in order with (old image, new image, changes), each change once, on the event
loop; what they do must not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from headrace.clock import Clock
from headrace.server.cluster.admin import Admin
from headrace.server.cluster.changes import Change
from headrace.server.cluster.controller import Controller
from headrace.server.cluster.differences import apply_changes, changes_between
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.office import elect, give_up
from headrace.server.cluster.registration import Registration
from headrace.server.cluster.sequence import load, prepare_paths, read_from, read_head
from headrace.server.cluster.store import (
    ConflictError,
    Create,
    Delete,
    NoNodeError,
    Op,
    SessionExpiredError,
    SessionState,
    SetData,
    Store,
    StoreError,
    UnavailableError,
)
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.schema import Request, Response

log = logging.getLogger(__name__)

Listener = Callable[[MetadataImage, MetadataImage, Sequence[Change]], None]

Link = Callable[[int, Request, int], Awaitable[Response]]
"""Asks broker N something in some version; raises ConnectionError when there is no answer."""

RETRY_SECONDS = 0.2
FAILED_SECONDS = 5.0
CATCH_UP_SECONDS = 5.0


class ClusterNode:
    """Start it once; `image`, `config` and `controller` are then always current."""

    def __init__(
        self,
        store: Store,
        registration: Registration,
        config: BrokerConfig,
        clock: Clock,
        close_store: Callable[[], Awaitable[None]] | None = None,
        lone: bool = False,
    ) -> None:
        """`close_store` ends what the session runs on, when that belongs to this broker alone."""
        self._store = store
        self._close_store = close_store
        self._registration = registration
        self._clock = clock
        self.broker_id = registration.broker_id
        self.broker_epoch = -1
        """The epoch of this broker's present registration."""
        self.image = MetadataImage()
        self.config = config
        """This broker's settings, with what was changed while running."""
        self.lone = lone
        """No other broker can ever join: the store is inside this process."""
        self.admin = Admin(self, clock)
        self.on_registered: Callable[[int], object] | None = None
        """Told the new epoch when this broker has registered again, after a lost session."""
        self.link: Link | None = None
        """How to ask another broker; without it only this broker's own controller can be asked."""
        self.controller: Controller | None = None
        """The controller, while this broker is it."""
        self._listeners: list[Listener] = []
        self._waiting: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []
        self._head_changed = asyncio.Event()
        self._office_changed = asyncio.Event()
        self._session_lost = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with every change from now on."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Returns when this broker is alive in its own image and the cluster has a controller."""
        self._store.on_session(self._session_changed)
        while True:
            try:
                await self._enter()
                break
            except (UnavailableError, SessionExpiredError) as error:
                if self.lone:
                    raise
                log.warning("broker %d waits for the store of its cluster: %s", self.broker_id, error)
                if self.broker_epoch >= 0:  # It did register: its data are of that life, not of one before.
                    self._registration = replace(self._registration, previous_epoch=self.broker_epoch)
                await self._clock.sleep(RETRY_SECONDS)
        for work in (self._follow(), self._seek_office(), self._keep_registered()):
            task = asyncio.create_task(work)
            task.add_done_callback(_report)
            self._tasks.append(task)
        self._head_changed.set()
        await self.until(lambda image: self._alive_in(image) and image.controller_id >= 0)

    async def _enter(self) -> None:
        """The first steps, which may be taken again when the store goes away between them."""
        await prepare_paths(self._store)
        await self._register()
        image, _ = await load(self._store, self.image)
        self._advance(image, changes_between(self.image, image))
        await self._stand_for_election()

    def _alive_in(self, image: MetadataImage) -> bool:
        me = image.brokers.get(self.broker_id)
        return me is not None and not me.fenced and me.epoch == self.broker_epoch

    async def until(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Wait until the image is such that `condition` holds."""
        if condition(self.image):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, future))
        try:
            await future
        finally:
            self._waiting = [entry for entry in self._waiting if entry[1] is not future]

    async def until_offset(self, offset: int) -> None:
        """Wait until this broker has seen change number `offset`, as after an operation of the controller."""
        await self.until(lambda image: image.offset >= offset)

    @property
    def is_controller(self) -> bool:
        return self.controller is not None and self.controller.active

    async def ask_controller(self, request: Request, version: int) -> Response:
        """Ask the controller, which is another broker. When it has answered, this broker's image has caught up.

        NOT_CONTROLLER when there is none now, or it does not answer: the caller asks again.
        """
        controller_id = self.image.controller_id
        if self.link is None or controller_id == self.broker_id or not self.image.alive(controller_id):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "The cluster has no controller now; ask again.")
        try:
            reply = await self.link(controller_id, request, version)
        except ConnectionError as error:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"The controller did not answer: {error}.") from None
        with contextlib.suppress(StoreError, TimeoutError):
            head = await read_head(self._store)
            await self._clock.wait_for(self.until_offset(head.offset), CATCH_UP_SECONDS)
        return reply

    async def hand_over(self, seconds: float) -> None:
        """Before a stop: have the controller move this broker's leaders, as far as others can take them."""
        if not any(broker.active for broker in self.image.brokers.values() if broker.id != self.broker_id):
            return
        self._registration = replace(self._registration, stopping=True)
        with contextlib.suppress(ConflictError, UnavailableError, SessionExpiredError, TimeoutError):
            await self._store.commit([SetData(self._registration.path, self._registration.encode())])
            await self._clock.wait_for(
                self.until(lambda image: image.brokers[self.broker_id].in_controlled_shutdown), seconds
            )

    async def tell_disk_full(self, full: bool) -> None:
        """Have the controller let others lead while this broker's disk is full; StoreError when it cannot be told now."""
        self._registration = replace(self._registration, disk_full=full)
        # Without a node there is no session, and the next registration says it.
        with contextlib.suppress(ConflictError):
            await self._store.commit([SetData(self._registration.path, self._registration.encode())])

    async def stop(self) -> None:
        """Leave: the registration and the controller's office go with the session."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.controller is not None:
            await self.controller.stop()
            self.controller = None
        await self._store.close()
        if self._close_store is not None:
            await self._close_store()

    # -- the image

    async def _follow(self) -> None:
        while True:
            await self._head_changed.wait()
            self._head_changed.clear()
            try:
                head = await read_head(self._store, self._head_changed.set)
                base, steps = await read_from(self._store, self.image, head)
            except NoNodeError:
                self._head_changed.set()
                continue
            except (UnavailableError, SessionExpiredError):
                await self._clock.sleep(RETRY_SECONDS)
                self._head_changed.set()
                continue
            if base is not self.image:
                self._advance(base, changes_between(self.image, base))
            for offset, changes in steps:
                self._advance(apply_changes(self.image, offset, changes), changes)

    def _advance(self, image: MetadataImage, changes: Sequence[Change]) -> None:
        old, self.image = self.image, image
        if self.controller is not None and image.controller_epoch > self.controller.epoch:
            # Its next write would fail; but it must not go on answering from what it knew until it writes.
            self.controller.depose()
        if image.configs is not old.configs:
            self.config = self.config.with_dynamic(
                image.cluster_configs(), image.broker_configs(self.broker_id)
            )
        for listener in self._listeners:
            try:
                listener(old, image, changes)
            except Exception:
                log.exception("a listener failed on change %d", image.offset)
        for condition, future in self._waiting:
            if not future.done() and condition(image):
                future.set_result(None)

    # -- registration

    async def _register(self) -> None:
        """Create this broker's ephemeral node; an earlier life of the same broker gives way."""
        path, directory = self._registration.path, self._registration.directory
        deadline = self._clock.monotonic() + self.config.integer("zookeeper.session.timeout.ms") / 1000 + 2
        while True:
            gone = asyncio.Event()
            found = await self._store.get(path, gone.set)
            registration = self._registration  # which may have changed while others were waited for
            ops: list[Op] = [Create(path, registration.encode(), ephemeral=True)]
            if found is not None:
                data, stat = found
                if Registration.decode(self.broker_id, data).directory == directory:
                    # Whoever holds the lock of the data is the broker; the node belongs to a life that is over.
                    ops.insert(0, Delete(path, stat.version))
                else:
                    await self._wait_for_other(gone, deadline)
                    continue
            try:
                results = await self._store.commit(ops)
            except ConflictError:
                continue  # Whoever was there has changed or gone; look again.
            created = results[-1]
            assert created is not None
            self.broker_epoch = created.created
            if registration is not self._registration:  # It changed while it was being created.
                with contextlib.suppress(ConflictError):
                    await self._store.commit([SetData(path, self._registration.encode())])
            return

    async def _wait_for_other(self, gone: asyncio.Event, deadline: float) -> None:
        try:
            await self._clock.wait_for(gone.wait(), max(0.0, deadline - self._clock.monotonic()))
        except TimeoutError:
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"Another broker is registered as broker {self.broker_id}; give this one another node.id.",
            ) from None

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED and not self._stopping:
            log.warning("broker %d lost its session with the store", self.broker_id)
            if self.controller is not None:
                self.controller.depose()
            self._session_lost.set()
        elif state is SessionState.CONNECTED:
            self._head_changed.set()
            self._office_changed.set()

    async def _keep_registered(self) -> None:
        while True:
            await self._session_lost.wait()
            self._session_lost.clear()
            self._registration = self._registration.after_lost_session()
            try:
                await self._register()
            except (UnavailableError, SessionExpiredError):
                await self._clock.sleep(RETRY_SECONDS)
                self._session_lost.set()
                continue
            if self.on_registered is not None:
                self.on_registered(self.broker_epoch)
            self._head_changed.set()
            self._office_changed.set()

    # -- the controller's office

    async def _seek_office(self) -> None:
        while True:
            await self._office_changed.wait()
            self._office_changed.clear()
            try:
                await self._stand_for_election()
            except (UnavailableError, SessionExpiredError):
                await self._clock.sleep(RETRY_SECONDS)
                self._office_changed.set()
            except Exception:
                # All brokers may fail so at the same thing, and the cluster needs a controller as soon as it is gone.
                log.exception("broker %d could not stand for controller", self.broker_id)
                await self._clock.sleep(FAILED_SECONDS)
                self._office_changed.set()

    async def _stand_for_election(self) -> None:
        if self.controller is not None:
            if self.controller.active:
                return
            await self.controller.stop()
            self.controller = None
            await give_up(self._store)
        epoch = await elect(self._store, self.broker_id, self._office_changed.set)
        if epoch is None:
            return
        controller = Controller(
            self._store, self.broker_id, epoch, lambda: self.config, self._clock, self._office_changed.set
        )
        self.controller = controller
        try:
            await controller.take_office(self.image)
        except (KafkaError, StoreError) as error:
            log.warning("broker %d could not take the controller's office (%s)", self.broker_id, error)
            controller.depose()


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("cluster membership failed", exc_info=task.exception())
