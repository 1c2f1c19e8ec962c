"""`python -m bench.between CHECKOUT [--rows ROW,…] [--rounds N]`: what one operation costs this code's broker, beside another checkout's.

Both brokers are up, one works at a time, in short rounds that alternate. The figure is the broker's own CPU time for an operation, from
/proc, so it means something on a busy machine too, where throughput does not. The other checkout needs its `.venv` (`make setup`).
"""

import argparse
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import ClassVar

from bench.processes import Broken, end_cleanly_on_sigterm
from bench.session import Session
from bench.systems import Running
from bench.systems.base import Option
from bench.systems.headrace import Headrace

Operations = float
Work = Callable[[Running, str], Operations]
"""Loads a broker, on a topic of this name; returns how many operations that were."""

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}


class OtherCheckout(Headrace):
    name: ClassVar[str] = "other"

    def __init__(self, root: Path) -> None:
        self._root = root

    def _command(self) -> Path:
        return self._root / ".venv" / "bin" / "headrace"


def _load(kind: str, counted: str, partitions: int = 1, **options: Option) -> Work:
    def work(broker: Running, topic: str) -> Operations:
        broker.create(topic, partitions)
        extra = {"partitions": partitions} if kind in ("produce", "flood") else {}
        answer = broker.load(kind, topic=topic, **{**options, **extra})
        broker.delete(topic)
        return answer[counted]

    return work


def _single(in_flight: int, **options: Option) -> Work:
    def work(broker: Running, topic: str) -> Operations:
        broker.create(topic)
        one = {**broker.one_by_one, "in_flight": in_flight, **options}
        answer = broker.load("produce", topic=topic, seconds=2, **one)
        broker.delete(topic)
        return answer["records"]

    return work


def _rebalance(members: int, heartbeat_ms: int) -> Work:
    def work(broker: Running, topic: str) -> Operations:
        broker.load("rebalance", group=topic, members=members, heartbeat_ms=heartbeat_ms, session_ms=1000)
        return 1.0

    return work


ROWS: Mapping[str, tuple[str, Work]] = {
    "single": ("one 100 B record per request, pipelined", _single(1000)),
    "single-all": (
        "the same with acks=all and an idempotent producer",
        _single(5, acks="all", idempotence="true"),
    ),
    "next": ("one 100 B record per request, next after the reply", _single(1)),
    "batch-16k": (
        "batches of 16 KB",
        _load("flood", "records", records=3_000_000, batch_bytes=16_000),
    ),
    "batch-1m": ("batches of 1 MB", _load("flood", "records", records=20_000_000)),
    "batch-1m-6": (
        "batches of 1 MB, 6 partitions",
        _load("flood", "records", partitions=6, records=20_000_000),
    ),
    "produce-1": ("librdkafka's batches of 100 B", _load("produce", "records", seconds=3)),
    "produce-6": ("the same, 6 partitions", _load("produce", "records", partitions=6, seconds=3)),
    "latency": (
        "1,000 records/s from end to end",
        _load("latency", "records", rate=1000, seconds=3, warm_up=1),
    ),
    "commits-1": (
        "commits of one consumer",
        _load("commits", "commits", 64, committers=1, groups=1, seconds=2),
    ),
    "commits-64": (
        "commits of 64 members",
        _load("commits", "commits", 64, committers=64, groups=1, seconds=2),
    ),
    "commits-64-64": (
        "commits of 64 groups",
        _load("commits", "commits", 64, committers=64, groups=64, seconds=2),
    ),
    "transactions-1": (
        "one transactional producer",
        _load("transactions", "transactions", producers=1, records=1, seconds=2),
    ),
    "transactions-10": (
        "ten transactional producers",
        _load("transactions", "transactions", 10, producers=10, records=1, seconds=2),
    ),
    "join-20": ("joins and crashes in a group of 20", _rebalance(20, 20)),
    "join-200": ("joins and crashes in a group of 200", _rebalance(200, 100)),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench.between", description="This checkout's broker beside another's."
    )
    parser.add_argument("checkout", type=Path, help="where the other one is, with its .venv")
    parser.add_argument("--rows", default=",".join(ROWS), metavar="ROW,…", help=f"of: {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="after one that does not count")
    options = parser.parse_args()
    names = options.rows.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        parser.error(f"{unknown[0]} is no row; the rows are {', '.join(ROWS)}")
    end_cleanly_on_sigterm()
    session = Session()
    try:
        with ExitStack() as stack:
            brokers = {}
            for system in (Headrace(), OtherCheckout(options.checkout.resolve())):
                system.prepare()
                data = session.fresh(system, "between")
                stack.callback(shutil.rmtree, data.parent, ignore_errors=True)
                brokers[system.name] = stack.enter_context(system.start(data, SETTINGS))
            for name in names:
                _compare(brokers, name, options.rounds)
    except Broken as broken:
        print(broken, file=sys.stderr)
        return 1
    finally:
        session.close()
    return 0


def _compare(brokers: Mapping[str, Running], name: str, rounds: int) -> None:
    """Print the median cost of an operation of both, and the median of the ratios of the rounds."""
    title, work = ROWS[name]
    serial = count()
    costs: dict[str, list[float]] = {system: [] for system in brokers}
    for number in range(rounds + 1):
        order = list(brokers) if number % 2 else list(brokers)[::-1]
        for system in order:
            with brokers[system].metered() as usage:
                operations = work(brokers[system], f"{name}-{next(serial)}")
            if number:
                costs[system].append(usage.cpu_seconds * 1e6 / operations)
    here, other = costs["headrace"], costs["other"]
    ratios = sorted(mine / theirs for mine, theirs in zip(here, other, strict=True))
    print(
        f"{name:16} {statistics.median(here):10.2f} µs, the other {statistics.median(other):10.2f} µs: "
        f"{statistics.median(ratios):.2f} × ({ratios[0]:.2f} to {ratios[-1]:.2f})  {title}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
