"""A thousand connected clients, a hundred of them at work; any client that is refused, cut
off or unanswered fails the part.
"""

from functools import partial

from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running

ORDER = 80
TITLE = "1,000 connected clients, 100 active"

_PARTITIONS = 10


def run(session: Session) -> list[Row]:
    clients = session.size(1000, 100)
    title = f"memory with {clients:,} clients, {clients // 10} active, no errors"
    row = Row("connections-rss", title, "MB", "less", "10 s", [Bar(300, "at most", times=False)])
    with session.running(session.kafka_systems(), "connections") as running:
        for broker in running.values():
            broker.create("connections", _PARTITIONS)
        measure = partial(_connect, clients, session.seconds(10))
        session.compare(running, [row], measure, rounds=session.rounds(3), warm_up=False)
    return [row]


def _connect(clients: int, seconds: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        load = broker.start_load(
            "connections",
            topic="connections",
            partitions=_PARTITIONS,
            connections=clients,
            active=clients // 10,
            seconds=seconds,
        )
        _, most = load.answer_and_memory()
    return {"connections-rss": Sample(most, usage.cpu_seconds * 10 / seconds, most)}
