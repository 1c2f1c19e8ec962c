"""A broker's membership in its cluster: it registers, stands for election as controller, and follows the metadata.

Owns the broker's `image`. Listeners are called on the event loop with (old image, new image, changes), in order and once for
each change; they must not block.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from headrace.clock import Clock
from headrace.server.cluster.changes import Change
from headrace.server.cluster.controller import Controller
from headrace.server.cluster.controller_election import elect, resign
from headrace.server.cluster.differences import apply_changes, changes_between
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.passed_on import Client
from headrace.server.cluster.registrar import Registrar
from headrace.server.cluster.registration import Registration
from headrace.server.cluster.sequence import load, prepare_paths, read_from, read_head
from headrace.server.cluster.situation import Decision
from headrace.server.cluster.store import (
    ConflictError,
    NoNodeError,
    SessionExpiredError,
    SessionState,
    Store,
    StoreError,
    UnavailableError,
)
from headrace.server.cluster.writer import not_controller
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.schema import Request, Response

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)
T = TypeVar("T")

Listener = Callable[[MetadataImage, MetadataImage, Sequence[Change]], None]

RETRY_SECONDS = 0.2
FAILED_SECONDS = 5.0
CATCH_UP_SECONDS = 5.0


class CallBroker(Protocol):
    """Sends a request to another broker; raises ConnectionError when there is no reply."""

    async def __call__(
        self, broker_id: int, request: Request[R], version: int, client: Client | None = None
    ) -> R: ...


class ClusterNode:
    """Start it once; `image`, `config` and `controller` are then always current."""

    def __init__(
        self,
        store: Store,
        registration: Registration,
        config: BrokerConfig,
        clock: Clock,
        *,
        call_broker: CallBroker | None = None,
        close_store: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Without `call_broker` only this broker's own controller can be asked.

        `close_store` is given when the store runs in this process, for this broker alone.
        """
        self._store = store
        self._close_store = close_store
        self._clock = clock
        self._call_broker = call_broker
        self.broker_id = registration.broker_id
        self.registrar = Registrar(store, registration, clock)
        self.image = MetadataImage()
        self.config = config
        """This broker's settings, including those changed while it runs."""
        self.standalone = close_store is not None
        """No other broker can ever join: the store is in this process."""
        self.controller: Controller | None = None
        """The controller, while this broker is it."""
        self._listeners: list[Listener] = []
        self._registration_listeners: list[Callable[[], object]] = []
        self._waiting: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []
        self._head_changed = asyncio.Event()
        self._controller_changed = asyncio.Event()
        self._session = SessionState.CONNECTED
        self._session_lost = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's present registration."""
        return self.registrar.epoch

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with every change from now on."""
        self._listeners.append(listener)

    def on_registered_again(self, listener: Callable[[], object]) -> None:
        """Call `listener` whenever this broker has a new epoch, having lost its session and registered again."""
        self._registration_listeners.append(listener)

    async def start(self) -> None:
        """Returns when this broker is alive in its own image and the cluster has a controller."""
        self._store.on_session(self._session_changed)
        while True:
            try:
                await self._enter()
                break
            except (UnavailableError, SessionExpiredError) as error:
                if self.standalone:
                    raise
                log.warning("broker %d waits for the store of its cluster: %s", self.broker_id, error)
                self.registrar.before_another_start()
                await self._clock.sleep(RETRY_SECONDS)
        for work in (self._follow(), self._follow_controllers(), self._keep_registered()):
            task = asyncio.create_task(work)
            task.add_done_callback(_report)
            self._tasks.append(task)
        self._head_changed.set()
        await self.until(lambda image: self._alive_in(image) and image.controller_id >= 0)

    async def _enter(self) -> None:
        """The first steps, which start over when the store goes away between them."""
        await prepare_paths(self._store)
        await self._register()
        image, _ = await load(self._store, self.image)
        self._advance(image, changes_between(self.image, image))
        await self._stand_for_election()

    def _alive_in(self, image: MetadataImage) -> bool:
        me = image.brokers.get(self.broker_id)
        return me is not None and not me.fenced and me.epoch == self.broker_epoch

    async def until(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Wait until `condition` holds for the image."""
        if condition(self.image):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, future))
        try:
            await future
        finally:
            self._waiting = [entry for entry in self._waiting if entry[1] is not future]

    async def until_offset(self, offset: int) -> None:
        """Wait until this broker's image has change number `offset`."""
        await self.until(lambda image: image.offset >= offset)

    async def hand_over(self, seconds: float) -> None:
        """Before a stop: have the controller move leadership to other brokers, where others can lead."""
        if not any(broker.active for broker in self.image.brokers.values() if broker.id != self.broker_id):
            return
        with contextlib.suppress(ConflictError, UnavailableError, SessionExpiredError, TimeoutError):
            await self.registrar.report_stopping()
            await self._clock.wait_for(
                self.until(lambda image: image.brokers[self.broker_id].in_controlled_shutdown), seconds
            )

    async def stop(self) -> None:
        """Leave the cluster. The registration, and /controller if this broker holds it, go with the session."""
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

    # -- asking the controller

    @property
    def is_controller(self) -> bool:
        return self.controller is not None and self.controller.active

    @property
    def can_control(self) -> bool:
        """Whether this broker is the controller and reaches the store, without which nothing can be decided."""
        return self.is_controller and self._session is SessionState.CONNECTED

    @property
    def own_controller(self) -> Controller:
        """The controller, which must be this broker: NOT_CONTROLLER otherwise."""
        if self.controller is None or not self.controller.active:
            raise not_controller()
        return self.controller

    async def decide(self, decision: Decision[T], validate_only: bool = False) -> T:
        """Have this broker's own controller decide; returns once this broker's image shows the change.

        NOT_CONTROLLER when another broker is the controller.
        """
        controller = self.own_controller
        result = await controller.decide(decision, validate_only)
        await self.until_offset(controller.committed_offset)
        return result

    async def ask_controller(self, request: Request[R], version: int, client: Client | None = None) -> R:
        """Send a request to the controller, which is another broker; returns once this broker's image has caught up. `client` is
        for whom it is passed on.

        NOT_CONTROLLER when there is none now, or it does not reply: the caller retries.
        """
        controller_id = self.image.controller_id
        call = self._call_broker
        if call is None or controller_id == self.broker_id or not self.image.alive(controller_id):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "The cluster has no controller now; ask again.")
        try:
            reply = await call(controller_id, request, version, client)
        except ConnectionError as error:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"The controller did not answer: {error}.") from None
        with contextlib.suppress(StoreError, TimeoutError):
            head = await read_head(self._store)
            await self._clock.wait_for(self.until_offset(head.offset), CATCH_UP_SECONDS)
        return reply

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
            # Its next write would fail, but until then it would go on answering from an old image.
            self.controller.step_down()
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

    # -- the session and the registration

    def _session_changed(self, state: SessionState) -> None:
        self._session = state
        if state is SessionState.EXPIRED and not self._stopping:
            log.warning("broker %d lost its session with the store", self.broker_id)
            if self.controller is not None:
                self.controller.step_down()
            self._session_lost.set()
        elif state is SessionState.CONNECTED:
            self._head_changed.set()
            self._controller_changed.set()

    async def _register(self) -> None:
        await self.registrar.register(self.config.integer("zookeeper.session.timeout.ms") / 1000 + 2)

    async def _keep_registered(self) -> None:
        while True:
            await self._session_lost.wait()
            self._session_lost.clear()
            self.registrar.session_lost()
            try:
                await self._register()
            except (UnavailableError, SessionExpiredError):
                await self._clock.sleep(RETRY_SECONDS)
                self._session_lost.set()
                continue
            for listener in self._registration_listeners:
                listener()
            self._head_changed.set()
            self._controller_changed.set()

    # -- becoming the controller

    async def _follow_controllers(self) -> None:
        """Stand for election whenever the cluster may have no controller."""
        while True:
            await self._controller_changed.wait()
            self._controller_changed.clear()
            try:
                await self._stand_for_election()
            except (UnavailableError, SessionExpiredError):
                await self._clock.sleep(RETRY_SECONDS)
                self._controller_changed.set()
            except Exception:
                # Every broker may fail for the same reason, and the cluster needs a controller once the reason is gone.
                log.exception("broker %d could not stand for election as controller", self.broker_id)
                await self._clock.sleep(FAILED_SECONDS)
                self._controller_changed.set()

    async def _stand_for_election(self) -> None:
        if self.controller is not None:
            if self.controller.active:
                return
            await self.controller.stop()
            self.controller = None
            await resign(self._store)
        epoch = await elect(self._store, self.broker_id, self._controller_changed.set)
        if epoch is None:
            return
        controller = Controller(
            self._store, self.broker_id, epoch, self.config, self._clock, self._controller_changed.set
        )
        self.controller = controller
        try:
            await controller.become_controller(self.image)
        except (KafkaError, StoreError) as error:
            log.warning(
                "broker %d was elected but could not become the controller (%s)", self.broker_id, error
            )
            controller.step_down()


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("cluster membership failed", exc_info=task.exception())
