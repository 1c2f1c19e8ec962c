"""The faults. Each one picks its victim with the campaign's random numbers, breaks something for a while and mends it.

A fault is a generator: it injects, yields how long the cluster is to bear it, and mends when it is resumed. What it does not
mend itself (a broker that must start again) the campaign's `heal` does.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from faults.cluster import SESSION_MS, Cluster, until
from faults.load import GROUP, LEDGER, Reader, Writer, client_settings
from faults.reassign import reassign, reassigning
from headrace.wire.batch import HEADER_SIZE

SHORT, LONG = 1.5, SESSION_MS / 1000 + 3.0
MOST_PARTITIONS = 12


@dataclass(slots=True)
class Scene:
    """What a fault may act on."""

    cluster: Cluster
    random: Random
    writers: list[Writer]
    readers: list[Reader]

    def leader(self) -> int:
        """The leader of some partition of the ledger."""
        partition = self.random.randrange(self.writers[0].partitions)
        return self.cluster.leader(LEDGER, partition)

    def other(self, than: int) -> int:
        return self.random.choice([number for number in self.cluster.brokers if number != than])


Breaking = Iterator[float]
Fault = Callable[[Scene], Breaking]
CATALOGUE: dict[str, dict[str, Fault]] = {}
"""By group, then by name: `--only kill,partition` names groups or faults."""


def fault(group: str) -> Callable[[Fault], Fault]:
    def register(function: Fault) -> Fault:
        CATALOGUE.setdefault(group, {})[function.__name__.replace("_", "-")] = function
        return function

    return register


def chosen(only: list[str]) -> dict[str, Fault]:
    """The faults of these groups or names; all when none is named."""
    found = {}
    for group, faults in CATALOGUE.items():
        for name, function in faults.items():
            if not only or group in only or name in only:
                found[name] = function
    return found


# A process dies.


def _kill(scene: Scene, *victims: int) -> Breaking:
    for victim in victims:
        scene.cluster.brokers[victim].kill()
    yield scene.random.choice([0.0, SHORT, LONG])
    for victim in victims:
        scene.cluster.brokers[victim].start()
    for victim in victims:
        scene.cluster.brokers[victim].wait_ready()


@fault("kill")
def kill_leader(scene: Scene) -> Breaking:
    yield from _kill(scene, scene.leader())


@fault("kill")
def kill_follower(scene: Scene) -> Breaking:
    yield from _kill(scene, scene.other(scene.leader()))


@fault("kill")
def kill_controller(scene: Scene) -> Breaking:
    yield from _kill(scene, scene.cluster.controller())


@fault("kill")
def kill_coordinator(scene: Scene) -> Breaking:
    yield from _kill(scene, scene.cluster.coordinator(GROUP))


@fault("kill")
def kill_two(scene: Scene) -> Breaking:
    leader = scene.leader()
    yield from _kill(scene, leader, scene.other(leader))


@fault("kill")
def kill_one_after_the_other(scene: Scene) -> Breaking:
    """Each is killed as soon as the one before serves again, whether it has caught up or not."""
    for number in scene.random.sample(list(scene.cluster.brokers), 3):
        scene.cluster.brokers[number].kill()
        yield scene.random.choice([0.0, SHORT])
        scene.cluster.brokers[number].start()
        scene.cluster.brokers[number].wait_ready()


@fault("kill")
def kill_all(scene: Scene) -> Breaking:
    yield from _kill(scene, *scene.cluster.brokers)


# A process stands still: longer than its session, then back as if nothing had been.


def _pause(scene: Scene, victim: int) -> Breaking:
    scene.cluster.brokers[victim].signal(signal.SIGSTOP)
    yield scene.random.choice([SHORT, LONG, LONG])
    scene.cluster.brokers[victim].signal(signal.SIGCONT)


@fault("pause")
def pause_leader(scene: Scene) -> Breaking:
    yield from _pause(scene, scene.leader())


@fault("pause")
def pause_follower(scene: Scene) -> Breaking:
    yield from _pause(scene, scene.other(scene.leader()))


@fault("pause")
def pause_controller(scene: Scene) -> Breaking:
    yield from _pause(scene, scene.cluster.controller())


@fault("rolling")
def rolling_restart(scene: Scene) -> Breaking:
    for broker in scene.cluster.brokers.values():
        broker.stop()
        broker.start()
        broker.wait_ready()
        yield 0.0
        until("the ISRs are full again", lambda: scene.cluster.whole([LEDGER]), 60)


# ZooKeeper.


@fault("zookeeper")
def zookeeper_restarts(scene: Scene) -> Breaking:
    server = scene.random.choice(scene.cluster.zookeepers.servers)
    server.kill()
    yield scene.random.choice([0.0, SHORT])
    server.start()


@fault("zookeeper")
def zookeeper_loses_its_quorum(scene: Scene) -> Breaking:
    """Two of three, or the only one, are away for longer than a session."""
    servers = scene.cluster.zookeepers.servers
    victims = scene.random.sample(servers, len(servers) // 2 + 1)
    for server in victims:
        server.kill()
    yield LONG
    for server in victims:
        server.start()


@fault("zookeeper")
def zookeeper_freezes(scene: Scene) -> Breaking:
    servers = scene.cluster.zookeepers.servers
    for server in servers:
        server.pause()
    yield scene.random.choice([SHORT, LONG])
    for server in servers:
        server.resume()


@fault("zookeeper")
def session_expires(scene: Scene) -> Breaking:
    """A broker hears nothing of ZooKeeper for longer than its session, and serves on meanwhile."""
    victim = scene.random.choice([scene.leader(), scene.cluster.controller()])
    reset = scene.random.random() < 0.5
    links = [door.link() for door in scene.cluster.zookeeper_doors[victim]]
    scene.cluster.network.cut(links, reset=reset)
    yield LONG
    scene.cluster.network.heal(links)


# The network.


def _cut(scene: Scene, pairs: list[tuple[int, int]], *, there: bool, back: bool) -> Breaking:
    """Cut what the first of a pair asks of the second: its requests, the answers, or both."""
    cluster, reset = scene.cluster, scene.random.random() < 0.3 and there and back
    links = [cluster.brokers[asked].peers.link(str(asking)) for asking, asked in pairs]
    cluster.network.cut(links, there=there, back=back, reset=reset)
    yield scene.random.choice([SHORT, LONG, 2 * LONG])
    cluster.network.heal(links)


@fault("partition")
def leader_cut_from_followers(scene: Scene) -> Breaking:
    leader = scene.leader()
    others = [number for number in scene.cluster.brokers if number != leader]
    pairs = [(leader, other) for other in others] + [(other, leader) for other in others]
    yield from _cut(scene, pairs, there=True, back=True)


@fault("partition")
def one_follower_cut_off(scene: Scene) -> Breaking:
    leader = scene.leader()
    other = scene.other(leader)
    yield from _cut(scene, [(other, leader)], there=True, back=True)


@fault("partition")
def followers_hear_no_answer(scene: Scene) -> Breaking:
    leader = scene.leader()
    pairs = [(other, leader) for other in scene.cluster.brokers if other != leader]
    yield from _cut(scene, pairs, there=False, back=True)


@fault("partition")
def leader_hears_no_follower(scene: Scene) -> Breaking:
    leader = scene.leader()
    pairs = [(other, leader) for other in scene.cluster.brokers if other != leader]
    yield from _cut(scene, pairs, there=True, back=False)


@fault("partition")
def broker_cut_from_everything(scene: Scene) -> Breaking:
    """Other brokers, ZooKeeper and clients: on the other side of a broken switch."""
    victim = scene.leader()
    cluster = scene.cluster
    links = [cluster.brokers[victim].clients.link()]
    links += [cluster.brokers[victim].peers.link(str(other)) for other in cluster.brokers]
    links += [cluster.brokers[other].peers.link(str(victim)) for other in cluster.brokers]
    links += [door.link() for door in cluster.zookeeper_doors[victim]]
    cluster.network.cut(links)
    yield scene.random.choice([LONG, 2 * LONG])
    cluster.network.heal(links)


@fault("partition")
def clients_cut_from_leader(scene: Scene) -> Breaking:
    link = scene.cluster.brokers[scene.leader()].clients.link()
    there, back = scene.random.choice([(True, True), (True, False), (False, True)])
    scene.cluster.network.cut([link], there=there, back=back)
    yield scene.random.choice([SHORT, LONG])
    scene.cluster.network.heal([link])


# Slowness.


@fault("slow")
def slow_link(scene: Scene) -> Breaking:
    leader = scene.leader()
    link = scene.cluster.brokers[leader].peers.link(str(scene.other(leader)))
    seconds = scene.random.choice([0.02, 0.2])
    scene.cluster.network.slow([link], seconds)
    yield LONG
    scene.cluster.network.heal([link])


@fault("slow")
def slow_disk(scene: Scene) -> Breaking:
    victim = scene.cluster.brokers[scene.random.choice([scene.leader(), scene.other(-1)])]
    victim.order(write_seconds=scene.random.choice([0.002, 0.02]), sync_seconds=1.0)
    yield LONG
    victim.order()


# Full disks.


def _fill(scene: Scene, *victims: int) -> Breaking:
    for victim in victims:
        scene.cluster.brokers[victim].order(full=1)
    yield scene.random.choice([SHORT, LONG, 2 * LONG])
    for victim in victims:
        scene.cluster.brokers[victim].order()


@fault("full")
def full_disk_of_leader(scene: Scene) -> Breaking:
    yield from _fill(scene, scene.leader())


@fault("full")
def full_disk_of_follower(scene: Scene) -> Breaking:
    yield from _fill(scene, scene.other(scene.leader()))


@fault("full")
def full_disks_of_two(scene: Scene) -> Breaking:
    leader = scene.leader()
    yield from _fill(scene, leader, scene.other(leader))


@fault("full")
def full_disks_of_all(scene: Scene) -> Breaking:
    yield from _fill(scene, *scene.cluster.brokers)


# Changes on a running cluster.


@fault("reassign")
def replicas_move(scene: Scene) -> Breaking:
    """One replica of each of some partitions goes, and comes back as a new one in another place of the list."""
    cluster, random = scene.cluster, scene.random
    partitions = random.sample(range(scene.writers[0].partitions), 2)
    before = cluster.partitions(LEDGER)
    less = {
        partition: random.sample(before[partition].replicas, len(before[partition].replicas) - 1)
        for partition in partitions
    }
    again = {
        partition: random.sample(list(cluster.brokers), len(cluster.brokers)) for partition in partitions
    }
    for wanted in (less, again):
        reassign(cluster, LEDGER, wanted)
        yield 0.5
        until("partitions are moved", lambda: not reassigning(cluster), 90)


@fault("reassign")
def partitions_grow(scene: Scene) -> Breaking:
    count = scene.writers[0].partitions + 1
    if count <= MOST_PARTITIONS:
        admin = AdminClient(client_settings(scene.cluster.bootstrap))
        admin.create_partitions([NewPartitions(LEDGER, count)])[LEDGER].result(60)
        for reader in scene.readers:
            reader.grow(LEDGER, count - 1)
        for writer in scene.writers:
            writer.partitions = count
    yield SHORT


# What is on disk, and what time it is.


@fault("corrupt")
def corrupted_segment(scene: Scene) -> Breaking:
    """A killed broker finds the end of its logs changed: it must notice, and take from others what it lost."""
    # A disk that fails while nobody else is in sync loses what only it has, in any system.
    until("the ISRs are full", lambda: scene.cluster.whole([LEDGER]), 60)
    victim = scene.cluster.brokers[scene.leader()]
    victim.kill()
    directories = sorted(victim.data.glob(f"{LEDGER}-*"))
    for directory in scene.random.sample(directories, len(directories) // 2):
        segment = max(directory.glob("*.log"))
        size = segment.stat().st_size
        if size > HEADER_SIZE:
            with segment.open("r+b") as file:
                place = scene.random.randrange(max(0, size - 4096), size)
                file.seek(place)
                byte = file.read(1)
                file.seek(place)
                file.write(bytes([byte[0] ^ 0x55]))
    yield scene.random.choice([0.0, LONG])
    victim.start()
    victim.wait_ready()


@fault("clock")
def clock_jumps(scene: Scene) -> Breaking:
    victim = scene.cluster.brokers[scene.random.choice([scene.leader(), scene.cluster.controller()])]
    victim.order(clock_ms=scene.random.choice([-86_400_000, -3_600_000, 3_600_000, 86_400_000]))
    yield LONG
    victim.order()
