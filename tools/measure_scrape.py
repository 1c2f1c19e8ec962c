"""What a scrape costs and whom it delays, with 5,000 partitions: `.venv/bin/python tools/measure_scrape.py [PARTITIONS]`.

Prints the broker's CPU time for one scrape, and how long small requests of another connection take alone and beside scrapes.
"""

from __future__ import annotations

import itertools
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from headrace.testing.process import BrokerProcess
from headrace.testing.topics import create_topic
from headrace.testing.wire import WireClient
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPICS = 50
ROUNDS = 10


def cpu_seconds(process: int) -> float:
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def per_scrape(broker: BrokerProcess, url: str) -> tuple[float, int]:
    """(milliseconds of CPU on the event loop, bytes), the median of some rounds."""
    found, size = [], 0
    for _ in range(ROUNDS):
        before = cpu_seconds(broker.process.pid)
        with urllib.request.urlopen(url) as answer:
            size = len(answer.read())
        found.append((cpu_seconds(broker.process.pid) - before) * 1000)
        time.sleep(0.2)
    return statistics.median(found), size


def delays(broker: BrokerProcess, while_: Callable[[], object]) -> list[float]:
    """Milliseconds that small requests take one after the other until `while_` returns, sorted."""
    over, taken = threading.Event(), []

    def ask() -> None:
        with WireClient(broker.bootstrap) as client:
            while not over.is_set():
                began = time.perf_counter()
                client.call(ApiVersionsRequest(), 0)
                taken.append((time.perf_counter() - began) * 1000)
                time.sleep(0.0005)

    asking = threading.Thread(target=ask)
    asking.start()
    while_()
    over.set()
    asking.join()
    return sorted(taken)


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as directory:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = {"headrace.metrics.listener": f"127.0.0.1:{port}"}
        broker = BrokerProcess(Path(directory) / "data", settings).start()
        try:
            for number in range(TOPICS):
                create_topic(broker.bootstrap, f"topic-{number:03}", partitions // TOPICS)
            commit(broker, partitions // TOPICS)
            url = f"http://127.0.0.1:{port}/metrics"
            urllib.request.urlopen(url).read()
            for title, address in (("added up", url), ("every partition", f"{url}?partitions=all")):
                cpu, size = per_scrape(broker, address)
                print(f"{partitions} partitions, {title}: {cpu:.1f} ms of CPU, {size / 1024:.0f} KiB")
            report("alone", delays(broker, lambda: time.sleep(3)))
            report("beside scrapes", delays(broker, lambda: scrape_for(3, url)))
            report(
                "beside scrapes of every partition",
                delays(broker, lambda: scrape_for(3, f"{url}?partitions=all")),
            )
        finally:
            broker.stop()


def commit(broker: BrokerProcess, partitions: int) -> None:
    """A group with an offset in every partition of ten topics."""
    topics = [
        OffsetCommitRequestTopic(
            f"topic-{number:03}", [OffsetCommitRequestPartition(index, 0) for index in range(partitions)]
        )
        for number in range(10)
    ]
    with WireClient(broker.bootstrap) as client:
        for _ in itertools.repeat(None, 100):
            answer = client.call(OffsetCommitRequest("readers", topics=topics), 8)
            if not any(each.error_code for topic in answer.topics for each in topic.partitions):
                return
            time.sleep(0.2)


def scrape_for(seconds: float, url: str) -> None:
    """In a process of its own, which does not hold up the one that asks."""
    code = (
        "import sys, time, urllib.request\n"
        "until = time.monotonic() + float(sys.argv[1])\n"
        "while time.monotonic() < until:\n"
        "    urllib.request.urlopen(sys.argv[2]).read()\n"
        "    time.sleep(0.2)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(seconds), url], check=True)


def report(title: str, taken: list[float]) -> None:
    count = len(taken)
    print(
        f"small requests {title}: median {taken[count // 2]:.2f} ms, p99 {taken[int(count * 0.99)]:.2f} ms, "
        f"p99.9 {taken[int(count * 0.999)]:.2f} ms, worst {taken[-1]:.2f} ms"
    )


if __name__ == "__main__":
    main()
