"""`python -m bench.between CHECKOUT [--rows ROW,…] [--rounds N]`: what one operation costs this code's broker, beside another checkout's.

Both brokers are up, one works at a time, in short rounds that alternate. The figure is the broker's own CPU time for an operation, from
/proc, so it means something on a busy machine too, where throughput does not. The other checkout needs its `.venv` (`make setup`).
"""

import argparse
import shutil
import statistics
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar

from bench.processes import Broken, end_cleanly_on_sigterm
from bench.session import Session
from bench.systems import Running
from bench.systems.base import Option
from bench.systems.headrace import Headrace

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}


@dataclass(frozen=True, slots=True)
class Work:
    """A load, and the figure in its answer that counts the operations (none: the whole load is one)."""

    title: str
    kind: str
    counts: str
    options: Mapping[str, Option]
    partitions: int = 1
    one_by_one: bool = False

    def prepare(self, broker: Running, topic: str) -> None:
        broker.create(topic, self.partitions)

    def run(self, broker: Running, topic: str) -> float:
        options = {**(broker.one_by_one if self.one_by_one else {}), **self.options}
        if self.kind in ("produce", "flood"):
            options["partitions"] = self.partitions
        options["group" if self.kind == "rebalance" else "topic"] = topic
        answer = broker.load(self.kind, **options)
        return answer[self.counts] if self.counts else 1.0


@dataclass(frozen=True, slots=True)
class Reading(Work):
    """A topic read from its beginning; writing it does not count."""

    def prepare(self, broker: Running, topic: str) -> None:
        broker.create(topic, self.partitions)
        broker.load("produce", topic=topic, partitions=self.partitions, size=100, **self.options)

    def run(self, broker: Running, topic: str) -> float:
        return broker.load(self.kind, topic=topic, partitions=self.partitions, **self.options)[self.counts]


class OtherCheckout(Headrace):
    name: ClassVar[str] = "other"

    def __init__(self, root: Path) -> None:
        self._root = root

    def _command(self) -> Path:
        return self._root / ".venv" / "bin" / "headrace"


def _single(title: str, **options: Option) -> Work:
    return Work(title, "produce", "records", {"seconds": 2, **options}, one_by_one=True)


def _reading(partitions: int) -> Work:
    title = f"consume 100 B records of {partitions} partition{'s' * (partitions > 1)}"
    return Reading(title, "consume", "records", {"records": 4_000_000}, partitions)


def _draining(partitions: int) -> Work:
    title = f"the same, {partitions} partition{'s' * (partitions > 1)}, by a reader that does not decode"
    return Reading(title, "drain", "records", {"records": 4_000_000}, partitions)


def _commits(committers: int, groups: int) -> Work:
    title = f"commits of {committers} members of {groups} groups"
    options = {"committers": committers, "groups": groups, "seconds": 2}
    return Work(title, "commits", "commits", options, partitions=64)


def _joins(members: int, heartbeat_ms: int) -> Work:
    options = {"members": members, "heartbeat_ms": heartbeat_ms, "session_ms": 1000}
    return Work(f"joins and crashes in a group of {members}", "rebalance", "", options)


def _transactions(producers: int) -> Work:
    options = {"producers": producers, "records": 1, "seconds": 2}
    return Work(f"transactions of {producers}", "transactions", "transactions", options, producers)


ROWS: Mapping[str, Work] = {
    "single": _single("one 100 B record per request, pipelined", in_flight=1000),
    "single-all": _single("acks=all, idempotent", in_flight=5, acks="all", idempotence="true"),
    "next": _single("one 100 B record per request, next after the reply", in_flight=1),
    "batch-16k": Work("batches of 16 KB", "flood", "records", {"records": 3_000_000, "batch_bytes": 16_000}),
    "batch-1m": Work("batches of 1 MB", "flood", "records", {"records": 20_000_000}),
    "produce-1": Work("librdkafka's batches of 100 B", "produce", "records", {"seconds": 3}),
    "produce-6": Work("the same, 6 partitions", "produce", "records", {"seconds": 3}, 6),
    "latency": Work(
        "1,000 records/s, end to end", "latency", "records", {"rate": 1000, "seconds": 3, "warm_up": 1}
    ),
    "consume-1": _reading(1),
    "consume-12": _reading(12),
    "drain-1": _draining(1),
    "drain-12": _draining(12),
    "commits-1": _commits(1, 1),
    "commits-64": _commits(64, 1),
    "commits-64-64": _commits(64, 64),
    "transactions-1": _transactions(1),
    "transactions-10": _transactions(10),
    "join-20": _joins(20, 20),
    "join-200": _joins(200, 100),
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
    except KeyboardInterrupt:
        return 130
    finally:
        session.close()
    return 0


def _compare(brokers: Mapping[str, Running], name: str, rounds: int) -> None:
    """Print the median cost of an operation of both, and the median of the ratios of the rounds."""
    work, serial = ROWS[name], count()
    costs: dict[str, list[float]] = {system: [] for system in brokers}
    for number in range(rounds + 1):
        for system in list(brokers) if number % 2 else list(brokers)[::-1]:
            broker, topic = brokers[system], f"{name}-{next(serial)}"
            work.prepare(broker, topic)
            with broker.metered() as usage:
                operations = work.run(broker, topic)
            broker.delete(topic)
            if number:
                costs[system].append(usage.cpu_seconds * 1e6 / operations)
    here, other = costs["headrace"], costs["other"]
    ratios = sorted(mine / theirs for mine, theirs in zip(here, other, strict=True))
    print(
        f"{name:16} {statistics.median(here):10.2f} µs, the other {statistics.median(other):10.2f} µs: "
        f"{statistics.median(ratios):.2f} × ({ratios[0]:.2f} to {ratios[-1]:.2f})  {work.title}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
