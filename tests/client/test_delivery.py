"""The delivery choices of docs/delivery.md: consumers killed with -9, connections cut."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.client import Producer, Record, TopicPartition
from headrace.client.scan import scan
from headrace.testing.broker import BrokerThread

NewTopic = Callable[..., str]
HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "docs" / "delivery.md"


def documented(first_heading: str) -> list[tuple[str, str, str]]:
    """(row, column, outcome) for each cell of the table with that first heading."""
    lines = iter(DOCUMENT.read_text().splitlines())
    heading = next(line for line in lines if line.startswith(f"| {first_heading} |"))
    columns = [cell.strip() for cell in heading.strip("|").split("|")][1:]
    next(lines)
    cells = []
    for line in lines:
        if not line.startswith("|"):
            break
        name, *outcomes = (cell.strip() for cell in line.strip("|").split("|"))
        cells += [
            (name.strip("`"), column, outcome) for column, outcome in zip(columns, outcomes, strict=True)
        ]
    return cells


@pytest.mark.parametrize(("choice", "moment", "outcome"), documented("consumer"))
def test_a_consumer_is_killed(
    choice: str,
    moment: str,
    outcome: str,
    bootstrap: str,
    admin: Any,
    new_topic: NewTopic,
    read_all: Callable[..., list[Record]],
    group: str,
    tmp_path: Path,
) -> None:
    topic = new_topic()
    if choice == "exactly_once":
        admin.create_topic(f"{topic}.out", partitions=1)
    with Producer(bootstrap) as producer:
        for number in range(3):
            producer.send_and_wait(topic, str(number))
    moment = moment.removeprefix("killed ")
    program = [sys.executable, HERE / "delivery_reader.py", choice, moment, bootstrap, topic, group, tmp_path]
    assert subprocess.run(program, check=False, timeout=60).returncode == -signal.SIGKILL
    assert subprocess.run(program, check=False, timeout=60).returncode == 0
    if choice == "exactly_once":
        effects = Counter(str(record.value) for record in read_all(f"{topic}.out"))
    else:
        effects = Counter((tmp_path / "effects").read_text().split())
    assert effects["b'0'"] >= 1
    assert effects["b'2'"] == 1
    assert {0: "lost", 1: "once", 2: "twice"}[effects["b'1'"]] == outcome


class Proxy:
    """Stands between clients and a broker and can cut a connection at a produce request or at its answer."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.broker_port = 0
        self.cut_at: str | None = None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self.broker_port))
            lose_answer = threading.Event()
            for source, target, forth in ((client, broker, True), (broker, client, False)):
                threading.Thread(
                    target=self._carry, args=(source, target, forth, lose_answer), daemon=True
                ).start()

    def _carry(
        self, source: socket.socket, target: socket.socket, forth: bool, lose_answer: threading.Event
    ) -> None:
        try:
            while (frame := _frame(source)) is not None:
                # Only the record in question, whenever its bytes come by.
                produce = forth and struct.unpack_from(">h", frame, 4)[0] == 0 and MARKED in frame
                if produce and self.cut_at == "request lost":
                    break
                if produce and self.cut_at == "acknowledgement lost":
                    lose_answer.set()
                if not forth and lose_answer.is_set():
                    break
                target.sendall(frame)
            else:
                return
            self.cut_at = None
            self.cuts += 1
        except OSError:
            pass
        finally:
            for end in (source, target):
                end.close() if end.fileno() < 0 else _shut(end)


def _frame(source: socket.socket) -> bytes | None:
    head = source.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    return head + source.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    proxy = Proxy()
    settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
    broker = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    proxy.broker_port = broker.port
    yield proxy
    broker.stop()
    proxy.close()


MARKED = b"the one"
PRODUCERS: dict[str, dict[str, Any]] = {
    "at_most_once": {"delivery": "at_most_once"},
    "acks=1": {"acks": 1},
    "at_least_once": {"delivery": "at_least_once"},
}


@pytest.mark.parametrize(("choice", "loss", "outcome"), documented("producer"))
def test_a_connection_is_cut(choice: str, loss: str, outcome: str, proxy: Proxy) -> None:
    bootstrap = f"127.0.0.1:{proxy.port}"
    topic = f"{choice}-{loss}".replace(" ", "-").replace("=", "-")
    cuts = proxy.cuts
    with Producer(bootstrap, linger_ms=0, retry_backoff_ms=10, **PRODUCERS[choice]) as producer:
        producer.send_and_wait(topic, "before")
        proxy.cut_at = loss
        sent = producer.send(topic, MARKED)
        # Without acknowledgements the producer does not notice, and there is no answer to be lost.
        assert sent.exception() is None
        if (choice, loss) != ("at_most_once", "acknowledgement lost"):
            deadline = time.monotonic() + 30
            while proxy.cuts == cuts:
                assert time.monotonic() < deadline, "the connection was not cut"
                time.sleep(0.01)
        proxy.cut_at = None
    # Without acknowledgements nobody knows when the record arrives, so give it time.
    deadline = time.monotonic() + 10
    while (seen := _outcome(bootstrap, topic)) != outcome and time.monotonic() < deadline:
        time.sleep(0.05)
    assert seen == outcome


def _outcome(bootstrap: str, topic: str) -> str:
    found = scan({"bootstrap.servers": bootstrap}, {TopicPartition(topic, 0): None})
    return {0: "lost", 1: "once", 2: "twice"}[sum(record.value == MARKED for record in found)]
