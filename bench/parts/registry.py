"""The schema registry alone: registering, looking schemas up by id, and starting with what has been registered.

Eight connections ask in turn, each for its next schema when it has its answer. Neither Confluent's registry nor Karapace can be had from a
package registry, so there is nobody to compare with.
"""

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.processes import Broken, Watched, free_port
from bench.rows import Bar, Row, Sample, figure
from bench.session import Session
from headrace.link.settings import KafkaSettings
from headrace.registry import records
from headrace.registry.content import Content
from headrace.registry.topic import TopicWriter, ensure

ORDER = 85
TITLE = "Schema registry"

_HEADRACE = (sys.executable, "-m", "headrace.cli")
_CONNECTIONS = 8
_AT_ONCE = 500


def run(session: Session) -> list[Row]:
    schemas = session.size(100_000, 2_000)
    rows = [
        Row("registry-register", "register", "schemas/s", "more", "1,000", [_at_least(500)]),
        Row("registry-by-id", "look up by id", "schemas/s", "more", "10,000", [_at_least(5_000)]),
        Row(
            "registry-start",
            f"start with {schemas:,} schemas",
            "s",
            "less",
            "one start",
            [Bar(3, "at most", times=False)],
        ),
        Row(
            "registry-rss",
            f"memory with {schemas:,} schemas",
            "MB",
            "less",
            "one start",
            [Bar(150, "at most", times=False)],
        ),
    ]
    with _broker(session) as bootstrap:
        taken: dict[str, list[Sample]] = {row.id: [] for row in rows}
        for number in range(session.rounds(3)):
            topic = f"_schemas_{number}"
            with _Registry(bootstrap, topic, session.work) as registry:
                register = partial(_registration, number)
                taken["registry-register"].append(registry.measured(session.seconds(5), 1_000, register))
                look_up = partial(_look_up, min(registry.answered, 1_000))
                taken["registry-by-id"].append(registry.measured(session.seconds(5), 10_000, look_up))
        _fill(bootstrap, "_schemas_many", schemas)
        for _ in range(session.rounds(3)):
            with _Registry(bootstrap, "_schemas_many", session.work) as registry:
                taken["registry-start"].append(
                    Sample(registry.ready, registry.process.cpu_seconds(), registry.rss)
                )
                taken["registry-rss"].append(Sample(registry.rss))
    for row in rows:
        row.figures = {"headrace": figure(taken[row.id])}
        session.say(f"  {row.id}: {', '.join(f'{each.value:,.6g}' for each in taken[row.id])}")
    return rows


def _at_least(limit: float) -> Bar:
    return Bar(limit, "at least", times=False)


def _schema(number: int, round_: int) -> str:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": ["null", "double"], "default": None},
    ]
    name = f"Order{round_}x{number}"
    return json.dumps(
        {"type": "record", "name": name, "namespace": "com.example", "fields": fields}, separators=(",", ":")
    )


def _registration(round_: int, number: int) -> bytes:
    body = json.dumps({"schema": _schema(number, round_)}).encode()
    head = f"POST /subjects/orders-{number}-value/versions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _look_up(known: int, number: int) -> bytes:
    return f"GET /schemas/ids/{number % known + 1} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def _fill(bootstrap: str, topic: str, count: int) -> None:
    settings = KafkaSettings.of({"bootstrap.servers": bootstrap}, "the benchmark")
    ensure(settings, topic, 1)
    writer = TopicWriter(settings, topic, "the benchmark")
    writer.begin()
    for first in range(0, count, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, count))
        writer.append([_record(number) for number in numbers])
    writer.close()


def _record(number: int) -> tuple[bytes, bytes]:
    subject = f"orders-{number}-value"
    return (
        records.schema_key(subject, 1),
        records.schema_value(subject, 1, number + 1, Content(_schema(number, 0))),
    )


@contextmanager
def _broker(session: Session) -> Iterator[str]:
    """A broker of its own, whose groups do not wait for more members."""
    session.work.mkdir(parents=True, exist_ok=True)
    address = f"127.0.0.1:{free_port()}"
    command = [*_HEADRACE, "up", "--temp", "--listen", address, "--set", "group.initial.rebalance.delay.ms=0"]
    process = Watched(command, session.work / "registry-broker.out")
    try:
        yield address
    finally:
        process.stop()


class _Registry:
    """`headrace registry` on a topic of its own; `ready` and `rss` are those of its start."""

    def __init__(self, bootstrap: str, topic: str, work: Path) -> None:
        command = [*_HEADRACE, "registry", "--bootstrap-server", bootstrap, "--listen", "127.0.0.1:0"]
        command += ["--set", f"kafkastore.topic={topic}", "--set", f"schema.registry.group.id={topic}"]
        self._log = work / f"{topic}.out"
        self._log.unlink(missing_ok=True)
        self.process = Watched(command, self._log)
        self.address, self.ready = self._await()
        self.rss = self.process.rss_mb()

    def __enter__(self) -> "_Registry":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def _await(self) -> tuple[tuple[str, int], float]:
        """Where it listens, and how many seconds after its start it said so."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.process.check()
            text = self._log.read_text() if self._log.exists() else ""
            if "is ready: schema registry on" in text:
                url = text.split("schema registry on http://")[1].split(",")[0]
                seconds = time.monotonic() - self.process.started
                host, _, port = url.rpartition(":")
                return (host, int(port)), seconds
            time.sleep(0.01)
        raise Broken("the registry was not ready within 60 s")

    def measured(self, seconds: float, work: int, request: Callable[[int], bytes]) -> Sample:
        """Answers a second, and CPU seconds for `work` of them."""
        before = self.process.cpu_seconds()
        began = time.monotonic()
        self.answered = answered = sum(self._ask(began + seconds, request))
        took = time.monotonic() - began
        cpu = self.process.cpu_seconds() - before
        return Sample(answered / took, cpu * work / answered, self.process.rss_mb())

    def _ask(self, until: float, request: Callable[[int], bytes]) -> Iterator[int]:
        connections = [socket.create_connection(self.address) for _ in range(_CONNECTIONS)]
        number = 0
        while time.monotonic() < until:
            for connection in connections:
                connection.sendall(request(number))
                number += 1
            for connection in connections:
                _answer(connection)
            yield len(connections)
        for connection in connections:
            connection.close()


def _answer(connection: socket.socket) -> None:
    """Read one answer, which must be a good one."""
    data = connection.recv(65536)
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise Broken(f"the registry answered {data[:300]!r}")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
