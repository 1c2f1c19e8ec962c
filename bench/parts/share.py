"""Share groups: records finished per second, and how soon a record reaches a member, with 1, 10 and 100 members on one partition.

The members are franz-go's. A record is finished when the broker has confirmed that it was accepted.
"""

from collections.abc import Mapping
from functools import partial

from bench.provision import need_load_program
from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running
from bench.systems.base import Load
from bench.systems.kafka_protocol import RunningKafka
from headrace.testing.wire import WireClient
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

ORDER = 95
TITLE = "Share groups"

MEMBERS = (1, 10, 100)
RATE = 1000
_GROUP, _SET = 32, 0


def run(session: Session) -> list[Row]:
    program = str(need_load_program("share-load"))
    rows = []
    with session.running(session.kafka_systems(), "share") as running:
        for members in MEMBERS:
            rows += _finished(session, running, program, members)
            rows += _latency(session, running, program, members)
    return rows


def _finished(session: Session, running: Mapping[str, Running], program: str, members: int) -> list[Row]:
    records = session.size(200_000, 20_000)
    row = Row(
        id=f"share-{members}",
        title=f"records of 100 B finished by a share group of {members} on one partition",
        unit="records/s",
        better="more",
        work="1 M records",
        bars=[Bar(1, "at least")],
    )
    for broker in running.values():
        assert isinstance(broker, RunningKafka)
        broker.create(row.id)
        broker.load("produce", topic=row.id, records=records, size=100)
    measure = partial(_finish, row.id, program, members, records)
    session.compare(running, [row], measure, rounds=session.rounds(5))
    return [row]


def _finish(row_id: str, program: str, members: int, records: int, broker: Running) -> dict[str, Sample]:
    group = _new_group(broker)
    with broker.metered() as usage:
        answer = _load(
            broker, program, "consume", topic=row_id, group=group, consumers=members, records=records
        )
    return {row_id: Sample(answer["per_second"], usage.cpu_seconds * 1e6 / records, usage.rss_mb)}


def _latency(session: Session, running: Mapping[str, Running], program: str, members: int) -> list[Row]:
    rows = [
        Row(
            id=f"share-latency-{members}-{percentile}",
            title=f"until a record reaches one of {members} members of a share group, {percentile}",
            unit="ms",
            better="less",
            work=f"{RATE:,} records a second",
            bars=[Bar(0.7, "at most")] if percentile == "p99" else [],
        )
        for percentile in ("p50", "p99")
    ]
    topic = f"share-latency-{members}"
    for broker in running.values():
        assert isinstance(broker, RunningKafka)
        broker.create(topic)
    measure = partial(_deliver, topic, program, members, session.seconds(8))
    session.compare(running, rows, measure, rounds=session.rounds(5))
    return rows


def _deliver(topic: str, program: str, members: int, seconds: int, broker: Running) -> dict[str, Sample]:
    group = _new_group(broker, "latest")
    with broker.metered() as usage:
        answer = _load(
            broker,
            program,
            "latency",
            topic=topic,
            group=group,
            consumers=members,
            rate=RATE,
            seconds=seconds,
            warm_up=1,
        )
    return {
        f"{topic}-{percentile}": Sample(answer[f"{percentile}_ms"], usage.cpu_seconds, usage.rss_mb)
        for percentile in ("p50", "p99")
    }


_made = 0


def _new_group(broker: Running, reset: str = "earliest") -> str:
    """A group of its own for each run: what another one has finished is not delivered again."""
    global _made
    _made += 1
    group = f"share-{_made}"
    setting = AlterableConfig("share.auto.offset.reset", _SET, reset)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(_GROUP, group, [setting])])
    with WireClient(broker.address) as client:
        assert client.call(request, 1).responses[0].error_code == 0
    return group


def _load(broker: Running, program: str, kind: str, **options: str | int) -> dict[str, float]:
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    return Load(broker, [program, kind, "--address", broker.address, *flags]).answer()
