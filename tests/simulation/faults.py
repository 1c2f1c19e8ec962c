"""What goes wrong, and when: a schedule drawn from the seed. Each fault breaks something and, after a while, mends it.

A fault draws from a stream of its own, so leaving out others (to find the shortest schedule that fails) changes nothing about it
but the state of the cluster that it meets. A power cut is held back where it would lose what the documentation does not promise to
keep: where no other live member of an ISR has the data (docs/replication.md).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.server.cluster.image import MetadataImage
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.elect_leaders import ElectLeadersRequest
from tests.simulation.client import Away, Refused
from tests.simulation.cluster import BROKERS, SESSION_SECONDS, Broker, Cluster
from tests.simulation.ensemble import NAME as ZOOKEEPER
from tests.simulation.readers import LATEST, list_offset

if TYPE_CHECKING:
    from tests.simulation.scenario import Scenario

Mend = Callable[[], None]
SHORT, LONG = 1.5, SESSION_SECONDS + 2.0


@dataclass(frozen=True, slots=True)
class Planned:
    number: int
    at: float
    kind: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.number}: {self.kind} at {self.at:.2f} s for {self.seconds:.2f} s"


class Scene:
    """What a fault may act on."""

    def __init__(self, scenario: Scenario, number: int) -> None:
        self.scenario = scenario
        self.cluster: Cluster = scenario.cluster
        self.world = scenario.world
        self.random: random.Random = scenario.world.stream(f"fault {number}")

    def any(self) -> Broker:
        return self.cluster.brokers[self.random.choice(BROKERS)]

    def image(self) -> MetadataImage | None:
        """The newest that any broker has."""
        images = [
            broker.node.cluster.image
            for broker in self.cluster.brokers.values()
            if broker.alive and broker.ready and broker.node is not None
        ]
        return max(images, key=lambda image: image.offset, default=None)

    def leader(self) -> Broker:
        image = self.image()
        if image is not None:
            topic = image.topics[self.random.choice(sorted(image.topics))]
            found = self.cluster.brokers.get(self.random.choice(topic.partitions).leader)
            if found is not None:
                return found
        return self.any()

    def controller(self) -> Broker:
        image = self.image()
        return self.cluster.brokers.get(image.controller_id if image else -1) or self.any()

    def others(self, broker: Broker) -> list[Broker]:
        return [each for each in self.cluster.brokers.values() if each is not broker]


Fault = Callable[[Scene], Mend]
CATALOGUE: dict[str, Fault] = {}


def fault(function: Fault) -> Fault:
    CATALOGUE[function.__name__.replace("_", "-")] = function
    return function


def plan(source: random.Random, begin: float, end: float, count: int) -> list[Planned]:
    kinds = sorted(CATALOGUE)
    times = sorted(source.uniform(begin, end) for _ in range(count))
    return [
        Planned(number, at, source.choice(kinds), source.choice((0.3, SHORT, SHORT, LONG, 2 * LONG)))
        for number, at in enumerate(times)
    ]


def _nothing() -> None:
    pass


# A process dies, or stands still.


def _start(*brokers: Broker) -> Mend:
    def start() -> None:
        for broker in brokers:
            if not broker.alive:
                broker.start()

    return start


def _kill(*brokers: Broker) -> Mend:
    for broker in brokers:
        broker.kill()
    return _start(*brokers)


@fault
def kill_leader(scene: Scene) -> Mend:
    return _kill(scene.leader())


@fault
def kill_controller(scene: Scene) -> Mend:
    return _kill(scene.controller())


@fault
def kill_two(scene: Scene) -> Mend:
    leader = scene.leader()
    return _kill(leader, scene.random.choice(scene.others(leader)))


@fault
def kill_all(scene: Scene) -> Mend:
    return _kill(*scene.cluster.brokers.values())


@fault
def kill_again_and_again(scene: Scene) -> Mend:
    """It dies while it starts, at any moment of its recovery."""
    broker = scene.any()
    _kill(broker)()
    for _ in range(3):
        delay = scene.random.uniform(0.0, 0.1)
        scene.world.after(delay * 3, lambda: (broker.kill(), broker.start()))
    return _start(broker)


@fault
def restart(scene: Scene) -> Mend:
    broker = scene.leader()
    broker.stop()
    return _start(broker)


@fault
def pause(scene: Scene) -> Mend:
    process = scene.leader().process
    if process is None:
        return _nothing
    process.pause()
    return process.resume


@fault
def pause_controller(scene: Scene) -> Mend:
    process = scene.controller().process
    if process is None:
        return _nothing
    process.pause()
    return process.resume


@fault
def pause_clients(scene: Scene) -> Mend:
    host = scene.random.choice(scene.cluster.client_hosts)
    for process in host.processes:
        process.pause()
    return lambda: [process.resume() for process in host.processes] and None


# The power goes.


def safe_without(scene: Scene, broker: Broker) -> bool:
    """Whether another member of each ISR has the data, serves, and is going to for as long as this one counts as alive."""
    if scene.scenario.active or scene.world.now < scene.scenario.fragile_until:
        return False
    for each in scene.cluster.brokers.values():
        if each is broker:
            continue
        if not (each.alive and each.ready and each.node is not None):
            return False
        if not each.node.cluster.image.brokers[each.number].active:
            return False
        for topic in each.node.cluster.image.topics.values():
            for partition in topic.partitions:
                if broker.number in partition.isr and len(partition.isr) == 1:
                    return False
    return True


@fault
def power_cut(scene: Scene) -> Mend:
    """In calm weather; until the cluster has noticed, nothing else goes wrong."""
    broker = scene.any()
    if not scene.scenario.syncs:
        if not safe_without(scene, broker):
            return _kill(broker)
        scene.scenario.fragile_until = scene.world.now + SESSION_SECONDS + 2.0
    broker.lose_power()
    return _start(broker)


@fault
def power_cut_of_all(scene: Scene) -> Mend:
    """Where every write is synced; elsewhere everything that was not synced everywhere may be lost."""
    if not scene.scenario.syncs:
        return power_cut(scene)
    for broker in scene.cluster.brokers.values():
        broker.lose_power()
    return _start(*scene.cluster.brokers.values())


# The network.


def _cut(scene: Scene, *directions: tuple[str, str]) -> Mend:
    scene.cluster.network.cut(*directions)
    return lambda: scene.cluster.network.heal(*directions)


@fault
def cut_two_brokers(scene: Scene) -> Mend:
    one = scene.leader().host.name
    other = scene.random.choice(scene.others(scene.cluster.brokers[int(one[-1])])).host.name
    return _cut(scene, (one, other), (other, one))


@fault
def cut_one_way(scene: Scene) -> Mend:
    one = scene.leader()
    other = scene.random.choice(scene.others(one))
    pair = (one.host.name, other.host.name)
    return _cut(scene, pair if scene.random.random() < 0.5 else pair[::-1])


@fault
def isolate_from_brokers(scene: Scene) -> Mend:
    """It keeps its clients and ZooKeeper."""
    broker = scene.leader()
    names = [other.host.name for other in scene.others(broker)]
    return _cut(
        scene, *((broker.host.name, name) for name in names), *((name, broker.host.name) for name in names)
    )


@fault
def keep_only_clients(scene: Scene) -> Mend:
    broker = scene.leader()
    names = [other.host.name for other in scene.others(broker)] + [ZOOKEEPER]
    return _cut(
        scene, *((broker.host.name, name) for name in names), *((name, broker.host.name) for name in names)
    )


@fault
def isolate(scene: Scene) -> Mend:
    broker = scene.any()
    names = [other.host.name for other in scene.others(broker)]
    names += [ZOOKEEPER, *(host.name for host in scene.cluster.client_hosts)]
    return _cut(
        scene, *((broker.host.name, name) for name in names), *((name, broker.host.name) for name in names)
    )


@fault
def cut_from_clients(scene: Scene) -> Mend:
    broker = scene.any().host.name
    client = scene.random.choice(scene.cluster.client_hosts).name
    way = [(broker, client), (client, broker)]
    return _cut(scene, *scene.random.sample(way, scene.random.choice((1, 2))))


@fault
def cut_from_zookeeper(scene: Scene) -> Mend:
    broker = scene.random.choice((scene.any(), scene.controller()))
    return _cut(scene, (broker.host.name, ZOOKEEPER))


@fault
def reset_connections(scene: Scene) -> Mend:
    one = scene.any().host
    names = [host for host in scene.cluster.network.hosts.values() if host is not one]
    other = scene.random.choice(names)
    scene.cluster.network.reset(one, other)
    scene.cluster.network.reset(other, one)
    return _nothing


@fault
def slow_network(scene: Scene) -> Mend:
    one = scene.any().host.name
    delay = scene.random.choice((0.005, 0.05, 0.3))
    pairs = [
        pair
        for host in scene.cluster.network.hosts.values()
        if host.name != one
        for pair in ((one, host.name), (host.name, one))
    ]
    for pair in pairs:
        scene.cluster.network.delays[pair] = delay

    def mend() -> None:
        for pair in pairs:
            scene.cluster.network.delays.pop(pair, None)

    return mend


# ZooKeeper.


@fault
def zookeeper_down(scene: Scene) -> Mend:
    scene.cluster.ensemble.stop()
    return scene.cluster.ensemble.start


@fault
def zookeeper_and_leader_down(scene: Scene) -> Mend:
    scene.cluster.ensemble.stop()
    start = _kill(scene.leader())

    def mend() -> None:
        scene.cluster.ensemble.start()
        start()

    return mend


@fault
def session_expires(scene: Scene) -> Mend:
    sessions = sorted(scene.cluster.ensemble._sessions)
    if sessions:
        scene.cluster.ensemble.end(scene.random.choice(sessions))
    return _nothing


@fault
def zookeeper_connections_break(scene: Scene) -> Mend:
    for session in scene.random.sample(sorted(scene.cluster.ensemble._sessions), k=1):
        scene.cluster.ensemble._sessions[session].lose_connection()
    return _nothing


# Disks.


@fault
def disk_full(scene: Scene) -> Mend:
    disk = scene.leader().host.disk
    disk.full = True

    def mend() -> None:
        disk.full = False

    return mend


@fault
def disk_slow(scene: Scene) -> Mend:
    disk = scene.leader().host.disk
    disk.slowness = scene.random.choice((10.0, 100.0, 500.0))

    def mend() -> None:
        disk.slowness = 1.0

    return mend


@fault
def disk_fails(scene: Scene) -> Mend:
    broker = scene.any()
    broker.host.disk.failing = True

    def mend() -> None:
        broker.host.disk.failing = False
        broker.kill()
        broker.start()

    return mend


# Clocks.


@fault
def clock_drifts(scene: Scene) -> Mend:
    host = scene.any().host
    host.drift(scene.random.choice((0.7, 0.95, 1.05, 1.4)))
    return lambda: host.drift(1.0)


@fault
def clock_jumps(scene: Scene) -> Mend:
    host = scene.any().host
    by = scene.random.choice((-3_600_000, -2000, 2000, 60_000))
    host.jump(by)
    return lambda: host.jump(-by)


# An operator at work.


@fault
def reassign(scene: Scene) -> Mend:
    image = scene.image()
    if image is None:
        return _nothing
    topics = []
    for _ in range(3):
        topic = image.topics[scene.random.choice(sorted(image.topics))]
        index = scene.random.randrange(len(topic.partitions))
        replicas = list(topic.partitions[index].replicas)
        scene.random.shuffle(replicas)
        if len(replicas) == len(BROKERS) and scene.random.random() < 0.4:
            replicas.pop()
        elif len(replicas) < len(BROKERS):
            replicas = list(BROKERS)
        topics.append(ReassignableTopic(topic.name, [ReassignablePartition(index, replicas)]))
    request = AlterPartitionReassignmentsRequest(timeout_ms=4000, topics=topics[:1])
    scene.scenario.ask(lambda client, address: client.call(address, request, 0))
    return _nothing


@fault
def elect_preferred(scene: Scene) -> Mend:
    request = ElectLeadersRequest(topic_partitions=None, timeout_ms=4000)
    scene.scenario.ask(lambda client, address: client.call(address, request, 2))
    return _nothing


@fault
def delete_records(scene: Scene) -> Mend:
    place = scene.random.choice(scene.scenario.shrinking)
    scenario = scene.scenario

    async def delete() -> None:
        client = scenario.admin
        try:
            offset = await list_offset(client, place, LATEST) - 2
            if offset <= 0:
                return
            scenario.history.deleted[place] = max(scenario.history.deleted.get(place, 0), offset)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(place[0], [DeleteRecordsPartition(place[1], offset)])],
                timeout_ms=4000,
            )
            reply = await client.call(await client.leader(*place), request, 2)
            code = ErrorCode(reply.topics[0].partitions[0].error_code)
            scene.world.trace(f"records of {place} before {offset} deleted: {code.name}")
        except (Away, Refused):
            client.forget(*place)

    scenario.admin.process.start(delete())
    return _nothing


async def run_plan(scenario: Scenario, planned: list[Planned]) -> None:
    """Every fault at its time, unless a power cut has to be noticed first; each is mended after its own while."""
    for each in planned:
        await asyncio.sleep(max(0.0, scenario.began + each.at - scenario.world.now))
        await asyncio.sleep(max(0.0, scenario.fragile_until - scenario.world.now))
        scenario.world.trace(f"FAULT {each}")
        scenario.faults_seen += 1
        mend = CATALOGUE[each.kind](Scene(scenario, each.number))
        scenario.active += 1

        def mended(each: Planned = each, mend: Mend = mend) -> None:
            if scenario.mending.pop(each.number, None) is not None:
                scenario.world.trace(f"MENDED {each.number}: {each.kind}")
                scenario.active -= 1
                mend()

        scenario.mending[each.number] = mended
        scenario.world.after(each.seconds, mended)
