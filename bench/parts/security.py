"""Produce, consume and latency over TLS with a login, and a thousand clients that connect with certificates.

Both brokers have the same certificates, listeners and users; the cipher is what client and broker agree on by themselves.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.parts.latency import compare_latency
from bench.parts.produce import produce
from bench.rows import Bar, Row, Sample
from bench.session import GB, Session
from bench.systems.base import Running
from bench.systems.kafka_protocol import OverTls, RunningKafka
from bench.systems.secured import Secured

ORDER = 85
TITLE = "Over TLS, with a login (SASL_SSL)"

_SIZE = 1024


def run(session: Session) -> list[Row]:
    with _secured(session) as running:
        login = {
            name: OverTls(plain, files.login_port, files.login()) for name, (plain, files) in running.items()
        }
        mutual = {
            name: OverTls(plain, files.mutual_port, files.certificate())
            for name, (plain, files) in running.items()
        }
        return [
            *_produced(session, login),
            *_consumed(session, login),
            *compare_latency(session, login, "tls-latency", "end to end at 1,000 records/s"),
            *_connected(session, mutual),
        ]


@contextmanager
def _secured(session: Session) -> Iterator[dict[str, tuple[RunningKafka, Secured]]]:
    with ExitStack() as stack:
        started = {}
        for system in session.kafka_systems():
            system.prepare()
            data = session.fresh(system, "security")
            stack.callback(shutil.rmtree, data.parent, ignore_errors=True)
            files = Secured.make(data.parent / "files")
            running = system.start(data, files.settings(), listeners=files.listeners)
            stack.enter_context(running)
            started[system.name] = (running, files)
        yield started


def _produced(session: Session, running: Mapping[str, Running]) -> Iterator[Row]:
    for load, how, times, least in (
        ("flood", "batches made beforehand", 3, 1.3),
        ("produce", "through librdkafka", 1, 1.0),
    ):
        row = Row(
            id=f"tls-{load}",
            title=f"produce 1 KiB records, 1 partition, {how}",
            unit="records/s",
            better="more",
            work="1 M records",
            bars=[Bar(least, "at least")],
        )
        records = session.size(600_000 * times, 20_000)
        session.compare(
            running, [row], partial(produce, load, row.id, _SIZE, 1, records), rounds=session.rounds(5)
        )
        yield row


def _consumed(session: Session, running: Mapping[str, Running]) -> Iterator[Row]:
    row = Row(
        id="tls-consume",
        title="consume 1 KiB records, 1 partition",
        unit="records/s",
        better="more",
        work="1 GB",
        bars=[Bar(1.0, "at least")],
    )
    records = session.size(2_000_000, 50_000)
    for broker in running.values():
        broker.create(row.id)
        broker.load("flood", topic=row.id, partitions=1, records=records, size=_SIZE)
    session.compare(running, [row], partial(_consume, row.id, records), rounds=session.rounds(5))
    for broker in running.values():
        broker.delete(row.id)
    yield row


def _consume(row_id: str, records: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load("consume", topic=row_id, partitions=1, records=records)
    return {
        row_id: Sample(answer["per_second"], usage.cpu_seconds * GB / answer["bytes"], usage.rss_mb),
    }


def _connected(session: Session, running: Mapping[str, Running]) -> list[Row]:
    clients = session.size(1000, 100)
    rows = [
        Row(
            id="tls-connect",
            title=f"{clients:,} clients connect with certificates",
            unit="s",
            better="less",
            work="all of them",
            bars=[Bar(1.0, "at most")],
        ),
        Row(
            id="tls-connections-rss",
            title=f"memory with {clients:,} clients connected over TLS",
            unit="MB",
            better="less",
            work="all of them",
            bars=[Bar(0.3, "at most")],
        ),
    ]
    for broker in running.values():
        broker.create("tls-connections", 10)
    session.compare(running, rows, partial(_connect, clients), rounds=session.rounds(3))
    return rows


def _connect(clients: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        load = broker.start_load(
            "connections", topic="tls-connections", partitions=10, connections=clients, active=2, seconds=3
        )
        answer, most = load.answer_and_memory()
    return {
        "tls-connect": Sample(answer["connect_seconds"], usage.cpu_seconds, most),
        "tls-connections-rss": Sample(most, usage.cpu_seconds, most),
    }
