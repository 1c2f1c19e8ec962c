"""One broker from start to stop: open the data, join the cluster, serve, and stop so that the next start need not scan the logs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headrace.clock import Clock, SystemClock
from headrace.link.addresses import join_address
from headrace.server.api.dispatch import Dispatcher
from headrace.server.api.engines import Engines
from headrace.server.api.registry import name_of
from headrace.server.cluster.auto_topic_creation import AutoTopicCreation
from headrace.server.cluster.decisions import alter_partition
from headrace.server.cluster.image import Endpoint
from headrace.server.cluster.join import join
from headrace.server.cluster.passed_on import Client
from headrace.server.cluster.peers import CLIENT_ID, Peers
from headrace.server.cluster.producer_ids import ProducerIds
from headrace.server.cluster.registration import Registration
from headrace.server.cluster.store import StoreError
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.config.listeners import Listener
from headrace.server.disk_room import DiskRoom
from headrace.server.disk_threads import DiskThreads
from headrace.server.groups.attach import attach_groups
from headrace.server.identity import Identity, StartError, confirm_identity, note_registration, read_identity
from headrace.server.live_acls import follow_acls
from headrace.server.live_settings import follow_settings
from headrace.server.log.cleaner import LogCleaner
from headrace.server.log.config import LogConfig
from headrace.server.log.directory import DirectoryInUse
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files
from headrace.server.log.flusher import GroupFlusher
from headrace.server.log.maintenance import LogMaintenance
from headrace.server.log.manager import LogManager
from headrace.server.log.moves import DiskMoves
from headrace.server.machine import Machine
from headrace.server.net.acceptors import Acceptors
from headrace.server.net.admission import Admission, ConnectionLimits
from headrace.server.net.binding import BindError, bind_metrics
from headrace.server.net.request_times import RequestStatistics
from headrace.server.occasional import client_metrics, mirror_links, share_groups
from headrace.server.quotas.addresses import AddressRates
from headrace.server.quotas.client_quotas import ClientQuotas, client_window
from headrace.server.quotas.follow import follow_quotas
from headrace.server.replica.replicas import Replicas
from headrace.server.replica.replication import Replication
from headrace.server.replica.sessions import FetchSessions
from headrace.server.replica.strays import settle_strays
from headrace.server.replica.turn import Turn
from headrace.server.security.authorizer import Authorizer
from headrace.server.security.between_brokers import between_brokers, with_the_key_of
from headrace.server.security.choosing import authorizer_of
from headrace.server.security.live_tls import LiveTls
from headrace.server.security.principal_builder import principal_builder
from headrace.server.settings import cleaner_settings, fetcher_settings, limits, maintenance_settings
from headrace.server.transactions.attach import attach_transactions
from headrace.wire.errors import KafkaError
from headrace.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from headrace.wire.schema import Request, Response

if TYPE_CHECKING:
    from headrace.server.logins import LoginOffers, Logins
    from headrace.server.metrics.endpoint import MetricsEndpoint

log = logging.getLogger("headrace")

R = TypeVar("R", bound=Response)

ALTER_PARTITION_VERSION = 3


class Node:
    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock | None = None,
        files: Files | None = None,
        authorizer: Authorizer | None = None,
        dispatcher: Callable[[Engines], Dispatcher] = Dispatcher,
        removes_strays: bool = True,
        machine: Machine | None = None,
    ) -> None:
        """`removes_strays` is off while topics are adopted: their logs are not in the metadata yet."""
        self.config = config
        self.clock = clock or SystemClock()
        self._files = files or Files()
        self._given_authorizer = authorizer
        self._dispatcher = dispatcher
        self._removes_strays = removes_strays
        self._machine = machine or Machine()
        self._disk = DiskThreads(config.integer("num.io.threads"), self._machine.threads)
        self._undo = contextlib.AsyncExitStack()
        """Ends what was started, newest first. A step that fails does not keep the others from running."""
        self.addresses: dict[str, tuple[str, int]] = {}
        """Where each listener is bound, by name; never port 0."""
        self.metrics_address: tuple[str, int] | None = None
        """Where metrics are served, if they are; never port 0."""
        self._metrics: MetricsEndpoint | None = None
        self.logins: Logins | None = None
        """None where nobody has to log in."""
        self.requests = RequestStatistics(self.clock.monotonic, name_of)
        self.guessed_addresses: dict[str, tuple[str, int]] = {}
        """Addresses advertised for listeners that bind every interface and have no advertised.listeners."""

    async def start(self) -> None:
        """Returns when clients are served. StartError when that is impossible; everything already started is then stopped."""
        try:
            await self._start()
        except BaseException as error:
            await self._undo.aclose()
            if isinstance(error, BindError | StoreError | KafkaError | ConfigError):
                raise StartError(str(error)) from None
            raise

    async def _start(self) -> None:
        """Each step pushes what ends it on `_undo`, so that a later step may fail."""
        undo = self._undo
        authorizer = self._given_authorizer or authorizer_of(self.config)
        self.tls = LiveTls(self.config)
        self._principals = {
            each.name: principal_builder(self.config.for_listener(each.name))
            for each in self.config.listeners
        }
        offers = self._login_offers()
        self.logs = self._open_logs()
        self._end_logs = self._leave_logs
        undo.callback(lambda: self._end_logs())
        undo.callback(self._disk.shutdown)  # Its threads finish writing before the logs close.
        identity = read_identity(self.logs, self.config)
        sockets = self._bind()
        for _, bound in sockets:
            undo.callback(bound.close)
        await self._open_metrics()
        self.broker_id = identity.broker_id
        flusher = GroupFlusher(self._disk)
        self.peers = self._peers()
        replication = self._replication()
        self.replicas = Replicas(self.broker_id, self.logs, self.config, flusher, self.clock, replication)
        undo.callback(self.replicas.close)
        self.maintenance = LogMaintenance(
            self.logs, flusher, self._disk, maintenance_settings(self.config), self.replicas
        )
        self.moves = DiskMoves(self.logs, self.maintenance, self._disk)
        undo.push_async_callback(self.moves.stop)
        self.cluster = await join(
            self.config,
            self._registration(identity),
            self.clock,
            lambda _, new, __: self.replicas.apply(new),
            self._call_broker,
            self._machine.open_store,
        )
        undo.push_async_callback(self.cluster.stop)
        confirm_identity(self.logs, identity, self.cluster.image.cluster_id, self.cluster.broker_epoch)
        if self._removes_strays:
            doubt = identity.reason_to_doubt_metadata(self.cluster.broker_epoch)
            settle_strays(self.logs, self.cluster.image, self.broker_id, doubt)
        self.cluster.on_registered_again(
            lambda: self._disk.submit(note_registration, self.logs, lambda: self.cluster.broker_epoch)
        )
        undo.push_async_callback(replication.stop)
        if not self.cluster.standalone:
            room = DiskRoom(
                self.logs.environment,
                [directory.path for directory in self.logs.directories],
                self._disk,
                self.clock,
                self.cluster.registrar.report_disk_full,
            )
            watching = asyncio.create_task(room.run())
            undo.callback(watching.cancel)
        follow_acls(self.cluster, authorizer)
        await self._serve(sockets, authorizer, offers)
        replication.start()
        self.moves.resume()
        self._serve_metrics()

    def _login_offers(self) -> LoginOffers | None:
        if not any(listener.authenticated for listener in self.config.listeners):
            return None
        # Imported here: without a login there is no need of it.
        from headrace.server.logins import LoginOffers

        offers = LoginOffers(self.config, lambda: self.cluster.image, self.clock)
        self._undo.callback(offers.close)
        return offers

    def _leave_logs(self) -> None:
        """End without having served: logs that were cleanly stopped before stay so, and the others stay marked as not."""
        if all(directory.clean for directory in self.logs.online_directories):
            self.logs.close()
        else:
            self.logs.release()

    def _peers(self) -> Peers:
        config = self.config
        self._secure_peers(config)
        return Peers(
            self.broker_id,
            lambda: self.replicas.image,
            config.inter_broker_listener,
            self.clock,
            setup_timeout=config.integer("socket.connection.setup.timeout.ms") / 1000,
            request_timeout=config.integer("request.timeout.ms") / 1000,
            settings=lambda: with_the_key_of(self.tls.of(config.inter_broker_listener), self._peer_settings),
        )

    def _secure_peers(self, config: BrokerConfig) -> None:
        self._peer_settings = between_brokers(config, f"{CLIENT_ID}-{self.broker_id}")

    def _replication(self) -> Replication:
        return Replication(
            self.broker_id,
            lambda: self.cluster.broker_epoch,
            self.peers,
            self._alter_partition,
            self.clock,
            fetcher_settings(self.config),
            self.config.integer("replica.lag.time.max.ms"),
        )

    async def _alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Ask the controller, which may be this broker, to change ISRs."""
        cluster = self.cluster
        if cluster.controller is not None:
            return await cluster.own_controller.decide(alter_partition(request))
        return await self._call_broker(cluster.image.controller_id, request, ALTER_PARTITION_VERSION)

    async def _call_broker(
        self, broker_id: int, request: Request[R], version: int, client: Client | None = None
    ) -> R:
        timeout = self.config.integer("controller.socket.timeout.ms") / 1000
        return await self.peers.call(broker_id, request, version, timeout, client)

    def _open_logs(self) -> LogManager:
        config = self.config
        environment = Environment(
            self._files,
            self.clock,
            producer_id_expiration_ms=config.integer("producer.id.expiration.ms"),
            transaction_verification=config.boolean("transaction.partition.verification.enable"),
            stray_retention_ms=config.integer("headrace.stray.retention.ms"),
        )
        defaults = LogConfig.of(config.topic_config({}))
        logs = LogManager(
            [str(path) for path in config.log_dirs],
            environment=environment,
            config_for=lambda topic: defaults,
            recovery_threads=config.integer("num.recovery.threads.per.data.dir"),
            threads=self._machine.threads,
        )
        try:
            logs.open()
        except DirectoryInUse as error:
            raise StartError(str(error)) from None
        except KafkaError as error:
            raise StartError(error.message) from None
        return logs

    def _registration(self, identity: Identity) -> Registration:
        clean = all(directory.clean for directory in self.logs.online_directories)
        return Registration(
            identity.broker_id,
            self._advertised(),
            identity.directory_id,
            rack=self.config.string("broker.rack"),
            host=self.config.string("headrace.host") or socket.gethostname(),
            # A broker that was killed has everything it wrote; after the machine went down, it may not.
            kept_its_data=not identity.new and (clean or not identity.rebooted),
            stopped_cleanly=clean,
            previous_epoch=identity.previous_epoch,
        )

    def _configure(self, config: BrokerConfig) -> None:
        """Apply settings that changed on the running cluster."""
        self.replicas.configure(config)
        self._configure_metrics(config)
        self.cleaner.settings = cleaner_settings(config)
        self._disk.resize(config.integer("num.io.threads"))
        self.tls.configure(config, self._disk)
        try:
            self._secure_peers(config)
        except ConfigError as error:
            log.error("Connections to other brokers stay as they were: %s", error)
        if self.logins is not None:
            self.logins.configure(config)
        self._configure_directories(config)
        environment = self.logs.environment
        environment.producer_id_expiration_ms = config.integer("producer.id.expiration.ms")
        environment.transaction_verification = config.boolean("transaction.partition.verification.enable")
        # In a thread, since it may look up host names.
        made = asyncio.get_running_loop().run_in_executor(self._disk, ConnectionLimits.of, config)
        made.add_done_callback(lambda limits: self._limit_connections(config, limits))

    def _configure_directories(self, config: BrokerConfig) -> None:
        self.moves.limit(config.integer("replica.alter.log.dirs.io.max.bytes.per.second"))
        for directory in self.logs.directories:
            directory.cordoned = directory.path in config.cordoned_log_dirs
        cordoned = all(directory.cordoned for directory in self.logs.directories)
        if cordoned != self.cluster.registrar.registration.cordoned:
            self._reporting = asyncio.create_task(self._report_cordoned(cordoned))

    async def _report_cordoned(self, cordoned: bool) -> None:
        try:
            await self.cluster.registrar.report_cordoned(cordoned)
        except StoreError as error:  # The next registration says it.
            log.info("cannot report to the cluster whether this broker is cordoned: %s", error)

    def _limit_connections(self, config: BrokerConfig, made: asyncio.Future[ConnectionLimits]) -> None:
        if made.cancelled() or config is not self.cluster.config:
            return
        error = made.exception()
        if error is None:
            self.admission.limits = made.result()
        else:
            log.error("The connection limits stay as they were: %s", error)

    async def _serve(
        self,
        sockets: list[tuple[Listener, socket.socket]],
        authorizer: Authorizer,
        offers: LoginOffers | None,
    ) -> None:
        undo = self._undo
        turn = Turn()
        auto_topic_creation = AutoTopicCreation(self.cluster, self.clock)
        sharing = share_groups(
            self.config,
            self.clock,
            self.cluster,
            self.replicas,
            self.peers,
            auto_topic_creation,
            self._disk,
            turn,
            undo,
        )
        self.groups = attach_groups(
            self.config, self.clock, self.cluster, self.replicas, self._disk, turn, lambda: sharing().keeper
        )
        undo.callback(self.groups.close)
        producer_ids = ProducerIds(self.cluster)
        self.transactions = attach_transactions(
            self.config,
            self.clock,
            self.replicas,
            self.groups,
            self.peers,
            producer_ids.next,
            self._disk,
            turn,
        )
        undo.callback(self.transactions.coordinator.close)
        mirrors = mirror_links(
            self.cluster, self.replicas, self.groups, self.peers, auto_topic_creation, self.clock, undo
        )
        self.engines = Engines(
            self.broker_id,
            self.clock,
            self._disk,
            self.cluster,
            self.peers,
            auto_topic_creation,
            self.logs,
            self.replicas,
            FetchSessions(self.config.integer("max.incremental.fetch.session.cache.slots"), self.clock),
            producer_ids,
            self.groups,
            self.transactions,
            self.moves,
            sharing,
            turn,
            ClientQuotas(self.config, self.clock),
            client_metrics(self.cluster, self.clock, undo),
            mirrors,
            authorizer,
            tls=self.tls,
        )
        config = self.cluster.config
        # From the file only. Settings of the cluster follow, and must not keep a broker from starting.
        self.admission = Admission(ConnectionLimits.of(self.config), AddressRates(client_window(self.config)))
        follow_quotas(self.cluster, self.engines.quotas, self.admission.addresses, self._disk)
        dispatcher = self._dispatcher(self.engines)
        if offers is not None:
            self.logins = offers.logins(self._principals, dispatcher.dispatch)
        self._configure_metrics(config)
        self._configure_directories(config)
        self.acceptors = Acceptors(
            dispatcher, limits(config), self.admission, self.clock, self._disk, self.requests
        )
        self.cleaner = LogCleaner(self.logs, self._disk, cleaner_settings(config), self._machine.compact)
        follow_settings(self.cluster, self.config, self._configure)
        self._background = asyncio.gather(
            self.maintenance.run(), self.cleaner.run(), self.tls.watch(self.clock, self._disk)
        )
        undo.push_async_callback(self._end_background)
        undo.push_async_callback(self.acceptors.close)
        for listener, bound in sockets:
            await self.acceptors.listen(
                listener,
                bound,
                tls=self.tls.of(listener.name),
                principals=self._principals[listener.name],
                gate=self.logins.gate(listener.name) if self.logins is not None else None,
            )

    async def _open_metrics(self) -> None:
        """Answer probes from now on; there is something to scrape once the broker serves."""
        address = self.config.metrics_address
        if address is None:
            return
        # Imported here: most brokers in tests and trials have none.
        from headrace.server.metrics.endpoint import MetricsEndpoint

        bound = bind_metrics(self.config, *address)
        self._undo.callback(bound.close)
        host, port = bound.getsockname()[:2]
        self.metrics_address = host, port
        # With its port, so that tools that describe the broker find it.
        self.config = self.config.with_static("headrace.metrics.listener", join_address(host, port))
        self._metrics = MetricsEndpoint(self.clock)
        self._undo.push_async_callback(self._metrics.close)
        await self._metrics.open(bound)

    def _serve_metrics(self) -> None:
        endpoint = self._metrics
        if endpoint is None:
            return
        from headrace.server.metrics.page import Page

        page = Page(self.engines, self.acceptors, self.peers, lambda: endpoint.stopping)
        endpoint.serve(page, self._why_not_ready)
        self._undo.callback(endpoint.leave)

    def _configure_metrics(self, config: BrokerConfig) -> None:
        self.requests.log_slower_than(config.integer("headrace.slow.request.ms"))
        every_partition = config.boolean("headrace.metrics.partitions")
        pushed_too = config.boolean("headrace.metrics.clients")
        if self._metrics is not None:
            self._metrics.every_partition = every_partition
            self._metrics.pushed_too = pushed_too

    def _why_not_ready(self) -> str | None:
        """Why clients should not come here now."""
        me = self.cluster.image.brokers.get(self.broker_id)
        if me is None or me.fenced or me.epoch != self.cluster.broker_epoch:
            return "The broker is cut off from its cluster."
        if not any(True for _ in self.logs.online_directories):
            return "Every data directory has failed."
        return None

    async def _hand_over(self) -> None:
        """Move leadership to other brokers while this one still serves."""
        config = self.config
        if config.boolean("controlled.shutdown.enable"):
            tries = config.integer("controlled.shutdown.max.retries")
            await self.cluster.hand_over(
                tries * config.integer("controlled.shutdown.retry.backoff.ms") / 1000
            )

    async def stop(self) -> None:
        """Hand over, stop serving, write everything to disk, mark the stop as clean, and leave the cluster."""
        self._end_logs = self.logs.close
        if self._metrics is not None:
            self._metrics.stop_serving()
        try:
            await self._hand_over()
        finally:
            await self._undo.aclose()

    async def crash(self) -> None:
        """End at once, as if the process were killed: nothing more is written."""
        self._end_logs = self.logs.release
        await self._undo.aclose()

    async def _end_background(self) -> None:
        self._background.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._background

    def _bind(self) -> list[tuple[Listener, socket.socket]]:
        sockets = self._machine.bind(self.config)
        for listener, bound in sockets:
            host, port = bound.getsockname()[:2]
            self.addresses[listener.name] = (host, port)
        return sockets

    def _advertised(self) -> tuple[Endpoint, ...]:
        """advertised.listeners, or what is bound without it; port 0 becomes the port actually bound."""
        advertised = {listener.name: listener for listener in self.config.advertised_listeners}
        endpoints = []
        for listener in self.config.listeners:
            bound_port = self.addresses[listener.name][1]
            given = advertised.get(listener.name)
            host = given.host if given is not None else listener.host
            port = given.port if given is not None else 0
            if not host or host in ("0.0.0.0", "::"):
                host = socket.getfqdn()
                self.guessed_addresses[listener.name] = (host, port or bound_port)
            endpoints.append(Endpoint(listener.name, host, port or bound_port, listener.protocol))
        return tuple(endpoints)
