"""One fetch of 64 KiB at the start, in the middle and at the end of a large partition: depth must not
matter.
"""

from functools import partial

from bench.processes import drop_from_page_cache
from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running
from bench.systems.kafka_protocol import RunningKafka

ORDER = 65
TITLE = "One fetch, by position in the partition"

_PLACES = ("start", "middle", "end")


def run(session: Session) -> list[Row]:
    where = f"of a {session.backlog_gigabytes():g} GB partition"
    rows = [
        Row(f"read-{place}", f"read at the {place} {where}", "ms", "less", "all reads of a round")
        for place in _PLACES
    ]
    rows += [
        Row(f"read-{place}-cold", f"the same, {place}, from disk", "ms", "less", "all reads of a round")
        for place in _PLACES
    ]
    spread = Row(
        "read-spread",
        "slowest of start, middle and end ÷ fastest",
        "×",
        "less",
        "all reads of a round",
        [Bar(1.25, "at most", times=False)],
    )
    running: dict[str, RunningKafka] = {}
    try:
        for system in session.kafka_systems():
            running[system.name] = system.start(session.backlog(system), partitions=1)
        session.compare(running, [*rows, spread], partial(_read, session), rounds=session.rounds(3))
        for broker in running.values():
            broker.stop()
    finally:
        for broker in running.values():
            broker.kill()
    return [*rows, spread]


def _read(session: Session, broker: Running) -> dict[str, Sample]:
    assert isinstance(broker, RunningKafka)
    drop_from_page_cache(broker.data / "backlog-0")
    with broker.metered() as usage:
        answer = broker.load("positions", topic="backlog", end_offset=session.backlog_records(), reads=200)
    figures = {f"read-{place}": answer[f"{place}_ms"] for place in _PLACES}
    warm = list(figures.values())
    figures |= {f"read-{place}-cold": answer[f"{place}_cold_ms"] for place in _PLACES}
    figures["read-spread"] = max(warm) / min(warm)
    return {row_id: Sample(value, usage.cpu_seconds, usage.rss_mb) for row_id, value in figures.items()}
