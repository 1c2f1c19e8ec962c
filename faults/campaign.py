"""One campaign: start a cluster and its load, break things by the seed, heal, and judge."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from faults import checks
from faults.catalogue import Fault, Scene
from faults.cluster import Cluster, Trouble, until
from faults.load import (
    GROUP,
    LEDGER,
    TRANSFERS,
    Member,
    Place,
    Reader,
    Transferrer,
    Worker,
    Writer,
    client_settings,
)
from faults.segments import Replica, read_replica

PARTITIONS, TRANSFER_PARTITIONS = 6, 3
RECOVERY_SECONDS = 120.0
"""How long a healed cluster may take until producers are answered again and every replica is in sync."""

# Lines of a broker's log that no fault excuses.
_WRONG = re.compile(r"^Traceback|^\S*Error: | CRITICAL |never retrieved|never awaited", re.MULTILINE)


@dataclass(slots=True)
class Figures:
    """What a campaign prints."""

    faults: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    longest_silence: tuple[float, str] = (0.0, "")
    """The longest time without an acknowledgement, and the fault it fell into."""
    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    transactions: tuple[int, int, int] = (0, 0, 0)
    delivered: int = 0
    rebalances: int = 0
    records: int = 0
    repeats: int = 0
    """Records that a client wrote again of its own accord."""
    slowest: float = 0.0

    def lines(self) -> list[str]:
        committed, aborted, unknown = self.transactions
        faults = ", ".join(f"{name} × {count}" for name, count in sorted(self.faults.items()))
        return [
            f"{sum(self.faults.values())} faults in {self.seconds:.0f} s: {faults}",
            f"sent {self.sent:,}, acknowledged {self.acknowledged:,}, failed {self.failed:,}; in the logs {self.records:,}",
            *([f"written again by a client that raised its epoch: {self.repeats:,}"] if self.repeats else []),
            f"transactions: {committed:,} committed, {aborted:,} aborted, {unknown} unknown to the producer",
            f"deliveries {self.delivered:,}, rebalances of the group {self.rebalances}",
            f"longest time without an acknowledgement {self.longest_silence[0]:.1f} s ({self.longest_silence[1]}); "
            f"slowest acknowledgement {self.slowest:.1f} s",
        ]


class Campaign:
    """`run` returns what the cluster did wrong."""

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        say: Callable[[str], None] = print,
        rate: int = 300,
    ) -> None:
        self.cluster = cluster
        self.figures = Figures()
        self.problems: list[str] = []
        self._random = Random(seed)
        self._say = say
        self._rate = rate
        self._began = time.monotonic()
        self.writers: list[Writer] = []
        self.members: list[Member] = []
        self._readers: list[Reader] = []
        self._everyone: list[Worker] = []

    def run(self, faults: dict[str, Fault], minutes: float = 0.0, rounds: int = 0) -> list[str]:
        """Breaks things for `minutes`, or so many times; in shuffled order, each fault once before any comes twice."""
        try:
            self.cluster.start()
            self._create_topics()
            self._start_load()
            self._break(faults, minutes, rounds)
            self._settle()
        except Trouble as trouble:
            self.problems.append(str(trouble))
            self._stop(self._everyone)
            self.problems += [*checks.troubles(self._everyone), *self._said_by_brokers()]
            return self.problems
        finally:
            self.figures.seconds = time.monotonic() - self._began
            self.cluster.close()
        self._judge()
        return self.problems

    # The load.

    def _create_topics(self) -> None:
        admin = AdminClient(client_settings(self.cluster.bootstrap))
        config = {"min.insync.replicas": "2"}
        topics = [
            NewTopic(LEDGER, PARTITIONS, 3, config=config),
            NewTopic(TRANSFERS, TRANSFER_PARTITIONS, 3, config=config),
        ]
        for created in admin.create_topics(topics, operation_timeout=30).values():
            created.result(60)

    def _start_load(self) -> None:
        bootstrap = self.cluster.bootstrap
        topics = {LEDGER: PARTITIONS, TRANSFERS: TRANSFER_PARTITIONS}
        self.writers = [
            Writer(f"writer{number}", bootstrap, PARTITIONS, self._rate, in_flight)
            for number, in_flight in ((1, 1), (2, 5))
        ]
        self.transferrer = Transferrer("transferrer", bootstrap, TRANSFER_PARTITIONS, 20)
        self.plain = Reader("plain", bootstrap, topics, isolation_level="read_uncommitted")
        self.careful = Reader("careful", bootstrap, topics, isolation_level="read_committed")
        self.near = Reader(
            "near", bootstrap, topics, isolation_level="read_uncommitted", client_rack="rack-2"
        )
        self.members = [Member("classic1", bootstrap), Member("classic2", bootstrap)]
        self._readers = [self.plain, self.careful, self.near]
        self._everyone = [*self.writers, self.transferrer, *self._readers, *self.members]
        for worker in self._everyone:
            worker.start()
        until("the first record is acknowledged", lambda: self._last_acknowledged() > 0, RECOVERY_SECONDS)

    def _last_acknowledged(self) -> float:
        newest = 0.0
        for writer in self.writers:
            if writer.acknowledged:
                name = next(reversed(writer.acknowledged))
                newest = max(newest, writer.acknowledged[name].at)
        return newest

    # The faults.

    def _break(self, faults: dict[str, Fault], minutes: float, rounds: int) -> None:
        scene = Scene(self.cluster, self._random, self.writers, self._readers)
        deadline = time.monotonic() + minutes * 60
        order: list[str] = []
        done = 0
        while done < rounds or (not rounds and time.monotonic() < deadline):
            if not order:
                order = self._random.sample(sorted(faults), len(faults))
            name = order.pop()
            self._inject(name, faults[name], scene)
            done += 1

    def _inject(self, name: str, fault: Fault, scene: Scene) -> None:
        began = time.monotonic()
        self.figures.faults[name] = self.figures.faults.get(name, 0) + 1
        try:
            for seconds in fault(scene):
                time.sleep(seconds)
            self.cluster.heal()
            healed = time.monotonic()
            until(
                "producers are answered again",
                lambda: self._last_acknowledged() > healed,
                RECOVERY_SECONDS,
            )
        except Trouble as trouble:
            raise Trouble(f"{name}: {trouble}") from None
        silence = self._silence(began)
        if silence > self.figures.longest_silence[0]:
            self.figures.longest_silence = (silence, name)
        self._say(
            f"{began - self._began:7.1f} s  {name}: answered {time.monotonic() - healed:.1f} s after healing, "
            f"at most {silence:.1f} s without an acknowledgement"
        )
        # Sometimes the next fault comes before this one is overcome.
        if self._random.random() < 0.7:
            self._wait_whole()

    def _silence(self, since: float) -> float:
        """The longest gap between two acknowledgements from `since` on."""
        moments = {since, time.monotonic()}
        for writer in self.writers:
            for name in reversed(list(writer.acknowledged)):
                at = writer.acknowledged[name].at
                if at < since:
                    break
                moments.add(at)
        ordered = sorted(moments)
        return max(later - earlier for earlier, later in pairwise(ordered))

    def _wait_whole(self) -> None:
        topics = [LEDGER, TRANSFERS, "__consumer_offsets", "__transaction_state"]
        until("every replica is in sync again", lambda: self.cluster.whole(topics), RECOVERY_SECONDS)

    # The end.

    def _settle(self) -> None:
        """Heal, let everything be answered, in sync and read, and stop in good order."""
        self.cluster.heal()
        self._wait_whole()
        self._stop([*self.writers, self.transferrer])
        ends = self._ends()
        until(
            "readers reach the ends of the logs",
            lambda: all(self._has_read(reader, ends) for reader in (self.plain, self.near)),
            RECOVERY_SECONDS,
        )
        until("the group reaches the ends of the logs", lambda: self._group_has_read(ends), RECOVERY_SECONDS)
        until("committed transactions are read", self._committed_are_read, RECOVERY_SECONDS)
        self._stop([*self._readers, *self.members])
        self.problems += checks.commits_kept(self.members, self._committed_offsets())
        self._wait_whole()
        self.problems += self.cluster.stop()

    def _stop(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join(300)
            if worker.is_alive():
                self.problems.append(f"{worker.name} did not end within 300 s")

    def _ends(self) -> dict[Place, int]:
        """The last acknowledged offset of every partition."""
        ends: dict[Place, int] = {}
        for writer in self.writers:
            for told in writer.acknowledged.values():
                ends[told.place] = max(ends.get(told.place, -1), told.offset)
        return ends

    @staticmethod
    def _has_read(reader: Reader, ends: dict[Place, int]) -> bool:
        return all(offset in reader.deliveries.seen.get(place, {}) for place, offset in ends.items())

    def _group_has_read(self, ends: dict[Place, int]) -> bool:
        return all(
            any(offset in member.deliveries.seen.get(place, {}) for member in self.members)
            for place, offset in ends.items()
        )

    def _committed_are_read(self) -> bool:
        if not self.transferrer.committed:
            return True
        last = max(self.transferrer.committed)
        seen = self.careful.deliveries.seen
        return all(
            f"transferrer {partition} {last}" in set(dict(seen.get((TRANSFERS, partition), {})).values())
            for partition in range(TRANSFER_PARTITIONS)
        )

    def _committed_offsets(self) -> dict[Place, int]:
        places = [TopicPartition(topic, partition) for topic, partition in self._places()]
        consumer = Consumer(client_settings(self.cluster.bootstrap, group_id=GROUP))
        try:
            found = consumer.committed(places, timeout=30)
        except KafkaException as error:
            raise Trouble(f"the group's offsets cannot be read: {error}") from None
        finally:
            consumer.close()
        return {(each.topic, each.partition): each.offset for each in found}

    def _places(self) -> list[Place]:
        ledger = [(LEDGER, partition) for partition in range(self.writers[0].partitions)]
        return ledger + [(TRANSFERS, partition) for partition in range(TRANSFER_PARTITIONS)]

    # The verdict.

    def _judge(self) -> None:
        replicas: dict[Place, dict[int, Replica]] = {
            (topic, partition): {
                number: read_replica(broker.data / f"{topic}-{partition}")
                for number, broker in self.cluster.brokers.items()
                if (broker.data / f"{topic}-{partition}").is_dir()
            }
            for topic, partition in self._places()
        }
        logs = checks.truth(replicas)
        ledger = {place: set(log.records) for place, log in logs.items() if place[0] == LEDGER}
        cleared, self.figures.repeats = checks.without_repeats(self.writers, logs)
        torn, committed = checks.transactions_whole(self.transferrer, self.careful.deliveries, logs)
        everything = {place: set(log.records) for place, log in logs.items()}
        self.problems += [
            *checks.identical(replicas),
            *checks.nothing_lost(self.writers, logs),
            *checks.nothing_twice(self.writers, cleared),
            *checks.in_order(cleared),
            *checks.readers_agree([*self._readers, *self.members], logs),
            *checks.all_delivered("the plain reader", [self.plain.deliveries], everything),
            *checks.all_delivered("the near reader", [self.near.deliveries], ledger),
            *checks.all_delivered("the careful reader", [self.careful.deliveries], {**ledger, **committed}),
            *checks.all_delivered("the group", [each.deliveries for each in self.members], ledger),
            *torn,
            *checks.troubles(self._everyone),
            *self._said_by_brokers(),
        ]
        self._count(logs)

    def _said_by_brokers(self) -> list[str]:
        files = {broker.errors for broker in self.cluster.brokers.values() if broker.errors.exists()}
        return [
            f"{file}: {found[0].strip()}"
            for file in sorted(files)
            if (found := _WRONG.search(file.read_text(errors="replace")))
        ]

    def _count(self, logs: dict[Place, Replica]) -> None:
        figures = self.figures
        figures.sent = sum(len(writer.sent) for writer in self.writers)
        figures.acknowledged = sum(len(writer.acknowledged) for writer in self.writers)
        figures.failed = sum(len(writer.failed) for writer in self.writers)
        figures.slowest = max(writer.slowest for writer in self.writers)
        transfers = self.transferrer
        figures.transactions = (len(transfers.committed), len(transfers.aborted), len(transfers.unknown))
        consumers: list[Reader | Member] = [*self._readers, *self.members]
        figures.delivered = sum(each.deliveries.count() for each in consumers)
        figures.rebalances = sum(member.rebalances for member in self.members)
        figures.records = sum(len(log.records) for log in logs.values())
