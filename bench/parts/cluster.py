"""Three brokers, three replicas: acks=all under load, a broker's death, its return, and many partitions.

Headrace runs as `headrace up --brokers 3`, Kafka as three KRaft nodes that are broker and controller. What needs brokers that
come and go by themselves runs on ZooKeeper in the case of Headrace.
"""

import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.rows import Bar, Row, Sample, figure
from bench.session import Session
from bench.systems import Running
from bench.systems.clusters import (
    ClusterSystem,
    HeadraceOnZooKeeper,
    HeadraceSupervised,
    KafkaCluster,
    OneByOne,
    RunningCluster,
)

ORDER = 100
TITLE = "Three brokers, three replicas, min.insync.replicas=2"


def run(session: Session) -> list[Row]:
    rows = [_ready(session)]
    systems = _systems(session, HeadraceSupervised())
    with _running(session, systems, "cluster") as running:
        rows += _produce(session, running)
        rows += _latency(session, running)
        rows.append(_without_leader(session, running, "supervised", "headrace up --brokers 3"))
    systems = _systems(session, HeadraceOnZooKeeper())
    with _running(session, systems, "failover") as running:
        rows.append(_without_leader(session, running, "zookeeper", "Headrace on ZooKeeper"))
        rows.append(_catch_up(session, running))
    for partitions in (1000, 5000):
        rows += _many_partitions(session, partitions)
    return rows


def _systems(session: Session, headrace: ClusterSystem) -> list[ClusterSystem]:
    both = [headrace, KafkaCluster()]
    return [system for system in both if not session.only or system.name in session.only]


@contextmanager
def _running(
    session: Session, systems: list[ClusterSystem], purpose: str
) -> Iterator[dict[str, RunningCluster]]:
    with ExitStack() as stack:
        started: dict[str, RunningCluster] = {}
        for system in systems:
            system.prepare()
            data = session.fresh_place(system.name, purpose)
            stack.callback(shutil.rmtree, data.parent, ignore_errors=True)
            started[system.name] = system.start(data)
            stack.enter_context(started[system.name])
        yield started


def _ready(session: Session) -> Row:
    """On data directories that have been used once; every broker answers Metadata with three brokers."""
    row = Row(
        "cluster-ready",
        "start until each of three brokers knows all three",
        "s",
        "less",
        "one start",
        [Bar(0.5, "at most")],
    )
    taken: dict[str, list[Sample]] = defaultdict(list)
    for system in _systems(session, HeadraceSupervised()):
        system.prepare()
        data = session.fresh_place(system.name, "cluster-start")
        system.start(data).stop()
        for number in range(rounds := session.rounds(3)):
            with system.start(data) as running:
                sample = Sample(running.ready_seconds, running.cpu_seconds(), running.rss_mb())
            taken[system.name].append(sample)
            session.say(f"  {row.id} {number + 1}/{rounds} {system.name}: {sample.value:.3f} s")
        shutil.rmtree(data.parent, ignore_errors=True)
    row.figures = {name: figure(samples) for name, samples in taken.items()}
    return row


def _produce(session: Session, running: Mapping[str, RunningCluster]) -> list[Row]:
    rows = []
    records = session.size(2_000_000, 20_000)
    for partitions in (1, 6):
        name = f"{partitions} partition{'s' * (partitions > 1)}"
        row = Row(
            f"cluster-produce-{partitions}",
            f"produce 100 B records, acks=all, {name}",
            "records/s",
            "more",
            "1 M records",
            [Bar(1.3, "at least")],
        )
        memory = Row(
            f"cluster-memory-{partitions}",
            f"memory of three brokers after that, {name}",
            "MB",
            "less",
            "1 M records",
            [Bar(0.2, "at most")],
        )
        measure = partial(_produce_once, row.id, memory.id, partitions, records)
        session.compare(running, [row, memory], measure, rounds=session.rounds(3))
        rows += [row, memory]
    return rows


def _produce_once(
    row_id: str, memory_id: str, partitions: int, records: int, broker: Running
) -> dict[str, Sample]:
    broker.create(row_id, partitions)
    with broker.metered() as usage:
        answer = broker.load(
            "produce", topic=row_id, partitions=partitions, records=records, size=100, acks="all"
        )
    broker.delete(row_id)
    cpu = usage.cpu_seconds * 1e6 / records
    return {
        row_id: Sample(answer["per_second"], cpu, usage.rss_mb),
        memory_id: Sample(usage.rss_mb, cpu, usage.rss_mb),
    }


def _latency(session: Session, running: Mapping[str, RunningCluster]) -> list[Row]:
    rows = [
        Row(
            f"cluster-{percentile}",
            f"end to end at 1,000 records/s, acks=all, {percentile}",
            "ms",
            "less",
            "10 k records",
            [Bar(0.8, "at most")] if percentile == "p99" else [],
        )
        for percentile in ("p50", "p99")
    ]
    for broker in running.values():
        broker.create("latency")
    session.compare(running, rows, partial(_latency_once, session.seconds(6)), rounds=session.rounds(3))
    for broker in running.values():
        broker.delete("latency")
    return rows


def _latency_once(seconds: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load("latency", topic="latency", rate=1000, seconds=seconds, warm_up=1, acks="all")
    cpu = usage.cpu_seconds * 1e4 / answer["records"]
    return {
        f"cluster-{percentile}": Sample(answer[f"{percentile}_ms"], cpu, usage.rss_mb)
        for percentile in ("p50", "p99")
    }


def _without_leader(session: Session, running: Mapping[str, RunningCluster], how: str, title: str) -> Row:
    """kill -9 of the leader; it counts until both others name another. All settings that decide it are the defaults."""
    row = Row(
        f"cluster-leaderless-{how}",
        f"time without a leader after kill -9 ({title})",
        "s",
        "less",
        "one death",
        [Bar(1, "at most")],
    )
    for broker in running.values():
        broker.create("failover", 6)
    session.compare(running, [row], partial(_kill_leader, row.id), rounds=session.rounds(3), warm_up=False)
    for broker in running.values():
        broker.delete("failover")
    return row


def _kill_leader(row_id: str, broker: Running) -> dict[str, Sample]:
    assert isinstance(broker, RunningCluster)
    broker.await_in_sync(6)
    victim = broker.leader()
    began = time.monotonic()
    broker.kill_broker(victim)
    seconds = broker.seconds_without_leader(victim, began)
    broker.start_broker(victim)
    broker.await_in_sync(6)
    return {row_id: Sample(seconds)}


def _catch_up(session: Session, running: Mapping[str, RunningCluster]) -> Row:
    megabytes = session.size(1000, 50)
    row = Row(
        "cluster-catch-up",
        f"a broker returns that missed {megabytes:,} MB in 6 partitions: from its start until in sync",
        "MB/s",
        "more",
        "the return",
        [Bar(1, "at least")],
    )
    measure = partial(_return, row.id, megabytes)
    session.compare(running, [row], measure, rounds=session.rounds(2), warm_up=False)
    return row


def _return(row_id: str, megabytes: int, broker: Running) -> dict[str, Sample]:
    assert isinstance(broker, OneByOne)
    broker.create("missed", 6)
    away = 3
    broker.stop_broker(away)
    broker.load(
        "produce",
        topic="missed",
        partitions=6,
        records=megabytes * 1000,
        size=1000,
        acks="all",
        time_limit=120,
    )
    began = time.monotonic()
    broker.start_broker(away)
    broker.await_in_sync(6)
    seconds = time.monotonic() - began
    broker.delete("missed")
    return {row_id: Sample(megabytes / seconds)}


def _many_partitions(session: Session, full: int) -> list[Row]:
    """One system at a time: so many partitions leave room for no other."""
    partitions = session.size(full, 200)
    seconds = session.seconds(10)
    title = f"{partitions:,} partitions"
    rows = {
        "election": Row(
            f"cluster-election-{full}",
            f"{title}: kill -9 of a broker until all it led have leaders",
            "s",
            "less",
            "one death",
            [Bar(1, "at most")],
        ),
        "memory": Row(
            f"cluster-partitions-rss-{full}",
            f"{title}: memory",
            "MB",
            "less",
            "one start",
            [Bar(0.2, "at most")],
        ),
        "idle": Row(
            f"cluster-partitions-idle-{full}",
            f"{title}: processor time of three idle brokers in 10 s",
            "s",
            "less",
            "10 s",
            [Bar(1, "at most")],
        ),
    }
    for system in _systems(session, HeadraceSupervised()):
        with _running(session, [system], f"partitions-{full}") as running:
            broker = running[system.name]
            broker.create("many", partitions)
            time.sleep(2)  # what a new topic leaves to do is no part of idling
            with broker.metered() as usage:
                time.sleep(seconds)
            victim = broker.leader()
            began = time.monotonic()
            broker.kill_broker(victim)
            elected = broker.seconds_without_leader(victim, began)
        idle = usage.cpu_seconds * 10 / seconds
        for name, value in (("election", elected), ("memory", usage.rss_mb), ("idle", idle)):
            rows[name].figures[system.name] = figure([Sample(value, idle, usage.rss_mb)])
            session.say(f"  {rows[name].id} {system.name}: {value:,.6g}")
    return list(rows.values())
