"""One seed from beginning to end: a cluster, clients, faults, then peace, and the verdict."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.simulation import checks
from tests.simulation.client import Away, Client
from tests.simulation.cluster import BROKERS, Cluster, Complaints, use_simulated_locks
from tests.simulation.faults import Planned, plan, run_plan
from tests.simulation.groups import ClassicMember, ConsumerMember
from tests.simulation.history import History, Place
from tests.simulation.readers import LATEST, Reader, list_offset
from tests.simulation.transactions import Copier, Transactor
from tests.simulation.world import World
from tests.simulation.writers import Lane, init_producer

CALM_BEGIN = 1.0
PATIENCE = 40.0
"""How long a healed cluster may take until everything works again."""

LEDGER, TRANSFERS, KEYED, COPIES = "ledger", "transfers", "keyed", "copies"
TOPICS = {LEDGER: 10, TRANSFERS: 5, KEYED: 3, COPIES: 2}


@dataclass(frozen=True, slots=True)
class Storm:
    """How long things go wrong, in virtual seconds, and how many do."""

    seconds: float = 50.0
    faults: int = 24


FULL, BRIEF = Storm(), Storm(14.0, 8)


@dataclass(slots=True)
class Verdict:
    seed: int
    troubles: list[str]
    digest: int
    seconds: float
    """Of virtual time."""
    cpu: float
    faults: int
    writes: int
    steps: int
    plan: list[Planned]
    lines: list[str]


class Scenario:
    def __init__(
        self,
        seed: int,
        show: Callable[[str], None] | None = None,
        kept: Sequence[int] | None = None,
        storm: Storm = FULL,
    ) -> None:
        """`kept` are the numbers of the faults to leave in; None for all."""
        self.seed = seed
        self.storm = storm
        self.world = World(seed, show)
        self.cluster = Cluster(self.world)
        self.history = History()
        self.began = 0.0
        self.faults_seen = 0
        self.active = 0
        """Faults that are not mended yet."""
        self.mending: dict[int, Callable[[], None]] = {}
        self.fragile_until = 0.0
        """A power cut was not noticed before: another fault now could cost more than is promised."""
        choose = self.world.stream("scenario")
        self.syncs = choose.random() < 0.4
        """Every write is brought to the disk before it is acknowledged."""
        self.plan = plan(self.world.stream("plan"), CALM_BEGIN, storm.seconds, storm.faults)
        if kept is not None:
            self.plan = [each for each in self.plan if each.number in kept]
        self.places: list[Place] = [(name, index) for name, count in TOPICS.items() for index in range(count)]
        self.shrinking: list[Place] = [(LEDGER, 8), (LEDGER, 9)]
        """Where records are deleted on request."""
        self.images: checks.Images = {}
        self._clients = 0
        self._done = False
        self.admin = self._client("admin")
        self.readers: list[Reader] = []
        self._working: list[str] = []
        for broker in self.cluster.brokers.values():
            if self.syncs:
                broker.settings["log.flush.interval.messages"] = "1"

    def _client(self, name: str) -> Client:
        host = self.cluster.client_hosts[self._clients % len(self.cluster.client_hosts)]
        self._clients += 1
        return Client(name, host.process(name), self.cluster.addresses)

    def ask(self, call: Callable[[Client, tuple[str, int]], Awaitable[object]]) -> None:
        """Send an operator's request to some broker; it may fail."""

        async def attempt() -> None:
            try:
                await call(self.admin, self.admin.random.choice(self.cluster.addresses))
            except Away:
                return

        self.admin.process.start(attempt())

    def run(self) -> Verdict:
        begun = time.process_time()
        self.cluster.start()
        driver = self.cluster.client_hosts[0].process("driver")
        story = driver.start(self._story())
        self.world.run(lambda: story.done() or bool(self.world.troubles), 400.0)
        if story.done() and story.exception() is not None:
            error = story.exception()
            assert error is not None
            logging.getLogger().error("the story broke", exc_info=error)
            self.world.trouble(f"the story broke: {error!r}")
        elif not story.done() and not self.world.troubles:
            self.world.trouble("the story did not end")
        return Verdict(
            self.seed,
            self.world.troubles,
            self.world.digest,
            self.world.now,
            time.process_time() - begun,
            self.faults_seen,
            self.history.writes,
            self.world.steps,
            self.plan,
            list(self.world.lines),
        )

    async def _story(self) -> None:
        await self._until("the cluster starts", lambda: all(each.ready for each in self._brokers()))
        await self._create_topics()
        self.began = self.world.now
        self._start_clients()
        await run_plan(self, self.plan)
        await asyncio.sleep(max(0.0, self.began + self.storm.seconds - self.world.now))
        self._heal()
        healed = self.world.now
        await self._until("all brokers serve", lambda: all(each.ready for each in self._brokers()))
        await self._until("every replica is in sync", self._in_sync)
        for name in self._working:
            await self._until(
                f"{name} works again",
                lambda name=name: self.history.last_success.get(name, 0.0) > healed,  # type: ignore[misc]
            )
        for group in ("classic", "modern"):
            await self._until(
                f"group {group} commits again",
                lambda group=group: self.history.last_success.get(group, 0.0) > healed,  # type: ignore[misc]
            )
        self.history.finishing = True
        await asyncio.sleep(4.0)
        await self._until("no transaction is open", self._settled)
        await self._read_to_the_end()
        for problem in checks.all_of(self):
            self.world.trouble(problem)

    def _brokers(self) -> list[checks.Broker]:
        return list(self.cluster.brokers.values())

    async def _until(self, what: str, condition: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
        deadline = self.world.now + PATIENCE
        while True:
            holds = condition()
            if not isinstance(holds, bool):
                holds = await holds
            if holds:
                return
            if self.world.now > deadline:
                self.world.trouble(f"not within {PATIENCE:.0f} s: {what}")
                return
            await asyncio.sleep(0.2)

    async def _create_topics(self) -> None:
        choose = self.world.stream("topics")
        topics = []
        for name, count in TOPICS.items():
            configs = [CreatableTopicConfig("segment.ms", str(choose.choice((1500, 4000))))]
            if name == KEYED:
                configs += [
                    CreatableTopicConfig("cleanup.policy", "compact"),
                    CreatableTopicConfig("min.cleanable.dirty.ratio", "0.01"),
                    CreatableTopicConfig("delete.retention.ms", "2000"),
                ]
            topics.append(CreatableTopic(name, count, 3, configs=configs))
        request = CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        reply = await self.admin.call(self.cluster.addresses[0], request, 7)
        assert not any(each.error_code for each in reply.topics), reply.topics[0].error_message

    def _start_clients(self) -> None:
        history = self.history
        for number in range(3):
            client = self._client(f"writer-{number}")
            client.process.start(self._write(client, 1 if number == 0 else 3))
        for number in range(2):
            client = self._client(f"bank-{number}")
            transfers = [place for place in self.places if place[0] == TRANSFERS]
            self._work(client, Transactor(client, history, f"bank-{number % 2}", transfers).run())
        # The same transactional id: whoever begins last fences the other.
        rival = self._client("bank-rival")
        rival.process.start(Transactor(rival, history, "bank-0", [(TRANSFERS, i) for i in range(5)]).run())
        for number in range(2):
            client = self._client(f"copier-{number}")
            client.process.start(
                Copier(
                    client, history, f"copy-{number % 2}", (LEDGER, number % 2), (COPIES, number % 2)
                ).run()
            )
        rival = self._client("copier-rival")
        rival.process.start(Copier(rival, history, "copy-0", (LEDGER, 0), (COPIES, 0)).run())
        for name, committed_only in (("reader", False), ("committed-reader", True)):
            client = self._client(name)
            reader = Reader(client, history, list(self.places), committed_only)
            self.readers.append(reader)
            self._work(client, reader.run())
        ledger = [(LEDGER, index) for index in range(8)]
        for number in range(3):
            client = self._client(f"classic-{number}")
            static = f"static-{number}" if number else None
            client.process.start(ClassicMember(client, history, "classic", ledger, static).run())
        for number in range(3):
            client = self._client(f"consumer-{number}")
            client.process.start(ConsumerMember(client, history, "modern", ledger).run())

    def _work(self, client: Client, work: Awaitable[None]) -> None:
        self._working.append(client.name)
        client.process.start(work)  # type: ignore[arg-type]

    async def _write(self, client: Client, depth: int) -> None:
        producer = await init_producer(client)
        lanes = [
            Lane(client, self.history, place, 1.0, depth, keys=8 if place[0] == KEYED else 0)
            for place in self.places
            if place[0] in (LEDGER, KEYED)
        ]
        self._working += [lane.name for lane in lanes]
        await asyncio.gather(*(lane.run(producer) for lane in lanes))

    def _heal(self) -> None:
        self.world.trace("HEAL")
        for mend in list(self.mending.values()):
            mend()
        self.cluster.network.heal()
        self.cluster.network.delays.clear()
        if not self.cluster.ensemble.up:
            self.cluster.ensemble.start()
        for host in self.cluster.network.hosts.values():
            host.disk.full = host.disk.failing = False
            host.disk.slowness = 1.0
            host.drift(1.0)
            for process in host.processes:
                process.resume()
        for broker in self._brokers():
            if not broker.alive or (broker.node is not None and not self._serves(broker)):
                broker.kill()
                broker.start()

    def _serves(self, broker: checks.Broker) -> bool:
        """False for a broker whose data directory has failed."""
        node = broker.node
        if node is None or not broker.ready:
            return broker.alive
        return bool(node.logs.online_directories)

    def _in_sync(self) -> bool:
        for broker in self._brokers():
            if broker.node is None or not broker.ready:
                return False
            for topic in broker.node.cluster.image.topics.values():
                for partition in topic.partitions:
                    if set(partition.isr) != set(partition.replicas) or partition.leader not in BROKERS:
                        return False
        return True

    async def _settled(self) -> bool:
        """Nothing committed is hidden behind an open transaction."""
        try:
            for place in self.places:
                if await list_offset(self.admin, place, LATEST, 1) != await list_offset(
                    self.admin, place, LATEST, 0
                ):
                    return False
        except Exception as error:
            if type(error).__name__ not in ("Away", "Refused"):
                raise
            return False
        return self._in_sync()

    async def _read_to_the_end(self) -> None:
        ends = {}
        for place in self.places:
            ends[place] = await list_offset(self.admin, place, LATEST)
        for reader in self.readers:
            await self._until(
                f"{reader.client.name} reads to the end",
                lambda reader=reader: all(  # type: ignore[misc]
                    reader.positions[place] >= end for place, end in ends.items()
                ),
            )


def prepare(seed: int) -> None:
    """Make this process a simulator for one seed: nothing in it may depend on the machine."""
    source = random.Random(f"{seed}/system")
    random.seed(f"{seed}/random")
    os.urandom = source.randbytes  # type: ignore[assignment]
    use_simulated_locks()
    gc.disable()


def simulate(
    seed: int,
    show: Callable[[str], None] | None = None,
    kept: Sequence[int] | None = None,
    storm: Storm = FULL,
) -> Verdict:
    prepare(seed)
    scenario = Scenario(seed, show, kept, storm)
    logger = logging.getLogger()
    logger.handlers = [Complaints(scenario.world)]
    logger.setLevel(logging.INFO)
    return scenario.run()
