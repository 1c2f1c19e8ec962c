"""From the start of the process to the first answered Metadata request: empty, and on data
that was stopped cleanly.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from bench.rows import Bar, Row, Sample, figure
from bench.session import Session
from bench.systems.kafka_protocol import KafkaProtocolSystem

ORDER = 50
TITLE = "Start to the first answered Metadata request"

_FASTER = Bar(0.2, "at most")
_WITHIN_A_SECOND = Bar(1.0, "at most", times=False)


def run(session: Session) -> list[Row]:
    partitions = session.size(2000, 50)
    gigabytes = session.backlog_gigabytes()
    return [
        _row(session, "empty", "no data", [_FASTER], 0, lambda system: _emptied(session, system)),
        _row(
            session,
            "backlog",
            f"{gigabytes:g} GB in one partition",
            [_FASTER, _WITHIN_A_SECOND],
            1,
            session.backlog,
        ),
        _row(
            session,
            "partitions",
            f"{partitions:,} partitions",
            [_FASTER, _WITHIN_A_SECOND],
            partitions,
            lambda system: _with_partitions(session, system, partitions),
        ),
    ]


def _row(
    session: Session,
    name: str,
    title: str,
    bars: list[Bar],
    partitions: int,
    data: Callable[[KafkaProtocolSystem], Path],
) -> Row:
    """Starts and cleanly stops each system in turn on its own data; a start counts once all
    partitions have leaders.
    """
    row = Row(f"start-{name}", f"start with {title}", "s", "less", "one start", bars)
    systems = session.kafka_systems()
    places = {system.name: data(system) for system in systems}
    taken: dict[str, list[Sample]] = defaultdict(list)
    rounds = session.rounds(5)
    for number in range(rounds):
        for system in systems if number % 2 == 0 else reversed(systems):
            with system.start(places[system.name], partitions=partitions) as running:
                sample = Sample(running.ready_seconds, running.cpu_seconds(), running.rss_mb())
            taken[system.name].append(sample)
            session.say(f"  {row.id} {number + 1}/{rounds} {system.name}: {sample.value:.3f} s")
    row.figures = {name: figure(samples) for name, samples in taken.items()}
    if name != "backlog":
        for place in places.values():
            shutil.rmtree(place.parent, ignore_errors=True)
    return row


def _emptied(session: Session, system: KafkaProtocolSystem) -> Path:
    """A directory that has been used once, so that a first start's formatting is no part of the figure."""
    system.prepare()
    data = session.fresh(system, "start")
    system.start(data).stop()
    return data


def _with_partitions(session: Session, system: KafkaProtocolSystem, partitions: int) -> Path:
    system.prepare()
    data = session.fresh(system, "partitions")
    with system.start(data) as running:
        running.create("many", partitions)
        running.load("produce", topic="many", partitions=partitions, records=partitions * 10)
    return data
