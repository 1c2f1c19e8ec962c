"""Consumer groups: commits per second, the time a rebalance takes, and what a thousand quiet groups cost.

The members are written on the bare protocol, so that what is measured is the broker and not a client's timers.
"""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.processes import Broken
from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running
from bench.systems.kafka_protocol import RunningKafka

ORDER = 90
TITLE = "Consumer groups"

SESSION_MS = 1000
# A new group waits for nobody, and a crash is noticed after one second.
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": str(SESSION_MS)}
_LINGER = {"group.coordinator.append.linger.ms": "0"}
_COMMITTERS = (("1 committer", 1, 1), ("64 members of one group", 64, 1), ("64 groups", 64, 64))


def run(session: Session) -> list[Row]:
    rows = []
    with _running(session, _SETTINGS) as running:
        rows += _commits(session, running, "commits", "")
        for members, heartbeat_ms in ((2, 10), (20, 20), (200, 100)):
            rows += _rebalances(session, running, members, heartbeat_ms)
    with _running(session, {**_SETTINGS, **_LINGER}) as running:
        rows += _commits(session, running, "commits-linger-0", ", Kafka's append linger at 0")
    with _running(session, _SETTINGS) as running:
        rows += _idle_groups(session, running)
    return rows


@contextmanager
def _running(session: Session, settings: Mapping[str, str]) -> Iterator[dict[str, RunningKafka]]:
    """Both brokers on fresh data; a setting that only Kafka has goes to Kafka alone."""
    with ExitStack() as stack:
        started = {}
        for system in session.kafka_systems():
            system.prepare()
            own = {
                name: value
                for name, value in settings.items()
                if system.name == "kafka" or name not in _LINGER
            }
            data = session.fresh(system, "groups")
            stack.callback(shutil.rmtree, data.parent, ignore_errors=True)
            running = system.start(data, own)
            stack.enter_context(running)
            started[system.name] = running
        yield started


def _commits(session: Session, running: Mapping[str, RunningKafka], row_id: str, suffix: str) -> list[Row]:
    rows = []
    for broker in running.values():
        broker.create("committed", 64)
    for name, committers, groups in _COMMITTERS:
        row = Row(
            id=f"{row_id}-{committers}-{groups}",
            title=f"offset commits, {name}, each after the last was answered{suffix}",
            unit="commits/s",
            better="more",
            work="100 k commits",
            bars=[Bar(2, "at least")],
        )
        measure = partial(_commit, row.id, committers, groups, session.seconds(5))
        session.compare(running, [row], measure, rounds=session.rounds(5))
        rows.append(row)
    return rows


def _commit(row_id: str, committers: int, groups: int, seconds: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load(
            "commits", topic="committed", committers=committers, groups=groups, seconds=seconds
        )
    cpu = usage.cpu_seconds * 1e5 / answer["commits"]
    return {row_id: Sample(answer["per_second"], cpu, usage.rss_mb)}


def _rebalances(
    session: Session, running: Mapping[str, RunningKafka], members: int, heartbeat_ms: int
) -> list[Row]:
    join = Row(
        f"group-join-{members}",
        f"a member joins a group, now of {members}, until all are stable (heartbeats every {heartbeat_ms} ms)",
        "ms",
        "less",
        "3 joins and 3 crashes",
        [Bar(1, "at most")],
    )
    crash = Row(
        f"group-crash-{members}",
        f"a member of {members} crashes, until the others are stable (its session takes {SESSION_MS} ms)",
        "ms",
        "less",
        "3 joins and 3 crashes",
        [Bar(1, "at most")],
    )
    measure = partial(_rebalance, join.id, crash.id, members, heartbeat_ms)
    session.compare(running, [join, crash], measure, rounds=session.rounds(5))
    return [join, crash]


def _rebalance(
    join_id: str, crash_id: str, members: int, heartbeat_ms: int, broker: Running
) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load(
            "rebalance",
            group=f"{join_id}-{time.monotonic_ns() % 10**9}",
            members=members,
            heartbeat_ms=heartbeat_ms,
            session_ms=SESSION_MS,
        )
    return {
        join_id: Sample(answer["join_ms"], usage.cpu_seconds, usage.rss_mb),
        crash_id: Sample(answer["crash_ms"], usage.cpu_seconds, usage.rss_mb),
    }


def _idle_groups(session: Session, running: Mapping[str, RunningKafka]) -> list[Row]:
    groups = session.size(1000, 100)
    cpu = Row(
        "idle-groups-cpu",
        f"{groups:,} groups of one member, heartbeats every 3 s: processor time for 10 s",
        "s",
        "less",
        "10 s",
        [Bar(1, "at most")],
    )
    memory = Row(
        "idle-groups-rss",
        f"{groups:,} groups of one member: memory",
        "MB",
        "less",
        "10 s",
        [Bar(1, "at most")],
    )
    measure = partial(_idle, cpu.id, memory.id, groups, session.seconds(10))
    session.compare(running, [cpu, memory], measure, rounds=session.rounds(3), warm_up=False)
    return [cpu, memory]


def _idle(cpu_id: str, memory_id: str, groups: int, seconds: int, broker: Running) -> dict[str, Sample]:
    assert isinstance(broker, RunningKafka)
    load = broker.start_load("idle-groups", groups=groups, seconds=seconds + 10)
    try:
        _until_stable(broker, groups)
        with broker.metered() as usage:
            time.sleep(seconds)
        load.answer()
    finally:
        load.cancel()
    for_ten = usage.cpu_seconds * 10 / seconds
    return {
        cpu_id: Sample(for_ten, for_ten, usage.rss_mb),
        memory_id: Sample(usage.rss_mb, for_ten, usage.rss_mb),
    }


def _until_stable(broker: RunningKafka, groups: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        listed = broker.admin.list_consumer_groups().result().valid
        if (
            sum(each.group_id.startswith("idle-") and each.state.name == "STABLE" for each in listed)
            == groups
        ):
            return
        time.sleep(0.2)
    raise Broken(f"{groups} groups were not stable at {broker.address} after 60 s")
