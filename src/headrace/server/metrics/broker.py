"""The broker itself: its part in the cluster, its replicas, the controller, connections, coordinators, quotas, certificates."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from headrace.link.addresses import join_address
from headrace.server.api.engines import Engines
from headrace.server.cluster.image import NO_LEADER, MetadataImage
from headrace.server.groups.administration import state_name
from headrace.server.groups.state import GroupState
from headrace.server.metrics.text import COUNTER, GAUGE, Family, labels, one, several
from headrace.server.net.acceptors import Acceptors
from headrace.server.replica.partition import Partition
from headrace.server.replica.replicas import Replicas

RUNNING, PENDING_SHUTDOWN = 3, 6
"""Kafka's numbers of a broker's state."""

WAIT_SECONDS = 1.0


@dataclass(slots=True)
class Survey:
    """What one look at all replicas of the broker finds. `steps` does the looking, a little at a time."""

    partitions: list[Partition]
    leaders: int = 0
    under_replicated: int = 0
    under_minimum: int = 0
    at_minimum: int = 0
    offline: int = 0
    reassigning: int = 0
    follower_lag: int = 0
    sizes: dict[str, int | None] = field(default_factory=dict)
    """Bytes on disk by topic; None while one of its logs has not been opened since the start."""

    def steps(self, replicas: Replicas) -> Iterator[str]:
        for number, partition in enumerate(self.partitions):
            if not number % 32:
                yield ""
            self._look(partition, replicas)

    def _look(self, partition: Partition, replicas: Replicas) -> None:
        log, leadership, image = partition.log, partition.leadership, replicas.image
        if log.offline_reason is not None:
            held = image.partition(partition.topic, partition.index)
            self.offline += held is not None and replicas.broker_id in held.replicas  # or it was just deleted
        elif not log.is_loaded:
            self.sizes[partition.topic] = None
        elif (size := self.sizes.get(partition.topic, 0)) is not None:
            self.sizes[partition.topic] = size + log.size
        if leadership is None:
            return
        self.leaders += 1
        in_sync, followers = len(leadership.isr), leadership.followers
        minimum = min(partition.config.min_insync_replicas, len(followers) + 1)
        self.under_minimum += in_sync < minimum
        self.at_minimum += in_sync == minimum
        if in_sync <= len(followers):
            state = image.partition(partition.topic, partition.index)
            adding = len(state.adding) if state is not None else 0
            self.reassigning += bool(state is not None and state.reassigning)
            self.under_replicated += in_sync <= len(followers) - adding
        end = log.log_end_offset
        for follower in followers.values():
            if follower.log_end_offset >= 0:
                self.follower_lag = max(self.follower_lag, end - follower.log_end_offset)


class ClusterFacts:
    """What the controller counts over the whole image; counted once for each image."""

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self.partitions = self.offline = self.imbalanced = 0

    def steps(self, image: MetadataImage) -> Iterator[str]:
        if image.topics is getattr(self._image, "topics", None) and image.brokers is getattr(
            self._image, "brokers", None
        ):
            return
        partitions = offline = imbalanced = 0
        for topic in list(image.topics.values()):
            for number, state in enumerate(topic.partitions):
                if not number % 64:
                    yield ""
                partitions += 1
                if state.leader == NO_LEADER or not image.alive(state.leader):
                    offline += 1
                elif state.leader != state.replicas[0]:
                    imbalanced += 1
        self._image = image
        self.partitions, self.offline, self.imbalanced = partitions, offline, imbalanced


class BrokerFamilies:
    def __init__(
        self,
        engines: Engines,
        acceptors: Acceptors,
        stopping: Callable[[], bool],
        elections: Callable[[], int],
    ) -> None:
        self._engines = engines
        self._acceptors = acceptors
        self._stopping = stopping
        self._unclean_elections = elections
        self._facts = ClusterFacts()
        self._rooms: dict[str, tuple[int, int]] = {}
        self._looking: asyncio.Future[dict[str, tuple[int, int]]] | None = None

    async def look_at_disks(self) -> None:
        """In a thread, and not for long: a disk that does not answer must not hold up the page, nor take a thread for each."""
        if self._looking is None:
            paths = [each.path for each in self._engines.logs.online_directories]
            self._looking = asyncio.get_running_loop().run_in_executor(self._engines.disk, _rooms, paths)
        looking = self._looking
        await asyncio.wait((looking,), timeout=WAIT_SECONDS)
        self._rooms = {}
        if looking.done():
            self._looking = None
            self._rooms = looking.result()

    def families(self, survey: Survey) -> Iterator[Family]:
        state = PENDING_SHUTDOWN if self._stopping() else RUNNING
        yield one(
            "kafka_server_kafkaserver_brokerstate", GAUGE, "3: running, 6: handing over before a stop.", state
        )
        yield from self._info()
        yield from self._replicas(survey)
        yield from self._controller()
        yield from self._connections()
        yield from self._coordinators()
        yield from self._quotas()
        yield from self._machine()

    def _info(self) -> Iterator[Family]:
        registered = self._engines.cluster.image.brokers.get(self._engines.broker_id)
        if registered is not None and registered.endpoints:
            first = registered.endpoints[0]
            label = labels(id=registered.id, address=join_address(first.host, first.port))
            yield one(
                "kafka_broker_info", GAUGE, "This broker and the address of its first listener.", 1, label
            )

    def _replicas(self, survey: Survey) -> Iterator[Family]:
        replicas = self._engines.replicas
        prefix = "kafka_server_replicamanager_"
        # The first of these does the looking.
        yield Family("", GAUGE, "", survey.steps(replicas))
        for name, help_, value in (
            ("partitioncount", "Replicas on this broker.", len(survey.partitions)),
            ("leadercount", "Partitions this broker leads.", survey.leaders),
            (
                "underreplicatedpartitions",
                "Partitions led here with a replica out of sync.",
                survey.under_replicated,
            ),
            (
                "underminisrpartitioncount",
                "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
                survey.under_minimum,
            ),
            (
                "atminisrpartitioncount",
                "Partitions led here with exactly min.insync.replicas in sync.",
                survey.at_minimum,
            ),
            ("offlinereplicacount", "Replicas here whose log has failed.", survey.offline),
            ("reassigningpartitions", "Partitions led here that are being moved.", survey.reassigning),
        ):
            yield one(prefix + name, GAUGE, help_, value)
        replication = replicas.replication
        if replication is not None:
            changes = replication.isr_changes
            yield one(
                prefix + "isrshrinks_total", COUNTER, "ISRs led here that lost a replica.", changes.shrinks
            )
            yield one(
                prefix + "isrexpands_total", COUNTER, "ISRs led here that got one back.", changes.expansions
            )
            yield one(
                prefix + "failedisrupdates_total",
                COUNTER,
                "ISRs that the controller refused.",
                changes.failures,
            )
        yield one(
            "headrace_follower_lag_max_records",
            GAUGE,
            "Records that the follower furthest behind has yet to fetch from this broker.",
            survey.follower_lag,
        )
        offline = len(self._engines.logs.directories) - len(list(self._engines.logs.online_directories))
        yield one(
            "kafka_log_logmanager_offlinelogdirectorycount",
            GAUGE,
            "Data directories that have failed.",
            offline,
        )

    def _controller(self) -> Iterator[Family]:
        cluster = self._engines.cluster
        leads, image, facts = cluster.is_controller, cluster.image, self._facts
        if leads:
            yield Family("", GAUGE, "", facts.steps(image))
        prefix = "kafka_controller_kafkacontroller_"
        fenced = sum(broker.fenced for broker in image.brokers.values())
        yield one(
            prefix + "activecontrollercount",
            GAUGE,
            "1 on the controller while it reaches the store. 0 on other brokers.",
            int(cluster.can_control),
        )
        for name, help_, value in (
            ("globaltopiccount", "Topics of the cluster.", len(image.topics)),
            ("globalpartitioncount", "Partitions of the cluster.", facts.partitions),
            ("offlinepartitionscount", "Partitions without a leader.", facts.offline),
            (
                "preferredreplicaimbalancecount",
                "Partitions not led by their preferred leader.",
                facts.imbalanced,
            ),
            ("activebrokercount", "Brokers that are alive.", len(image.brokers) - fenced),
            ("fencedbrokercount", "Brokers that are known and not alive.", fenced),
        ):
            yield one(prefix + name, GAUGE, help_ + " 0 on other brokers.", value if leads else 0)
        yield one(
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            COUNTER,
            "Leaders elected from outside the ISR while this broker was the controller.",
            self._unclean_elections(),
        )

    def _connections(self) -> Iterator[Family]:
        admission = self._acceptors.admission
        opened = admission.open_by_listener()
        prefix = "kafka_server_socket_server_metrics_"
        names = [each.name for each in self._engines.config.listeners]
        by_listener = {name: labels(listener=name) for name in names}
        yield several(
            prefix + "connection_count",
            GAUGE,
            "Open connections.",
            ((by_listener[name], opened.get(name, 0)) for name in names),
        )
        yield several(
            prefix + "connection_creation_total",
            COUNTER,
            "Connections accepted so far, refused ones included.",
            ((by_listener[name], admission.accepted[name]) for name in names),
        )

    def _coordinators(self) -> Iterator[Family]:
        groups = self._engines.groups
        found: Counter[str] = Counter()
        yield Family("", GAUGE, "", _count(found, groups.states()))
        prefix = "kafka_coordinator_group_groupmetadatamanager_"
        yield one(prefix + "numgroups", GAUGE, "Groups this broker coordinates.", sum(found.values()))
        for name in (
            "PreparingRebalance",
            "CompletingRebalance",
            "Stable",
            "Empty",
            "Assigning",
            "Reconciling",
        ):
            yield one(f"{prefix}numgroups{name.lower()}", GAUGE, f"Groups in the state {name}.", found[name])
        yield one(
            "headrace_coordinator_partitions_loading",
            GAUGE,
            "Partitions of __consumer_offsets whose groups cannot be used yet.",
            groups.loading,
        )
        states = Counter(each.status.label for each in self._engines.transactions.coordinator.loaded())
        yield several(
            "headrace_transactions",
            GAUGE,
            "Transactional ids this broker coordinates, by the state of their last transaction.",
            ((labels(state=state), count) for state, count in sorted(states.items())),
        )

    def _quotas(self) -> Iterator[Family]:
        quotas = self._engines.quotas
        yield one(
            "headrace_quota_throttles_total", COUNTER, "Times a client was told to wait.", quotas.throttled
        )
        yield one(
            "headrace_quota_throttle_seconds_total",
            COUNTER,
            "How long clients were told to wait, altogether.",
            quotas.throttled_ms / 1000,
        )

    def _machine(self) -> Iterator[Family]:
        tls = self._engines.tls
        if tls is not None:
            until = {
                each.name: found.current.valid_until.timestamp()
                for each in self._engines.config.listeners
                if (found := tls.of(each.name)) is not None
            }
            yield several(
                "headrace_tls_certificate_expiry_timestamp_seconds",
                GAUGE,
                "When the certificate of a listener ends.",
                ((labels(listener=name), at) for name, at in until.items()),
            )
        disks = [(labels(directory=path), room) for path, room in self._rooms.items()]
        for number, name, help_ in (
            (
                0,
                "headrace_disk_free_bytes",
                "Bytes the broker may still write to the disk of a data directory.",
            ),
            (1, "headrace_disk_size_bytes", "Bytes of the disk of a data directory."),
        ):
            yield several(name, GAUGE, help_, [(label, room[number]) for label, room in disks])


def _rooms(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """(bytes free, bytes altogether) of the disk of each directory."""
    found = {}
    for path in paths:
        try:
            status = os.statvfs(path)
        except OSError:
            continue  # The directory fails, and the log says so.
        found[path] = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    return found


def _count(found: Counter[str], states: Iterable[GroupState]) -> Iterator[str]:
    for state in states:
        for number, group in enumerate([*state.groups.values(), *state.share_groups.values()]):
            if not number % 64:
                yield ""
            found[state_name(group)] += 1
