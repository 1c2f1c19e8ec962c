"""What permissions cost: broker CPU per produce and per fetch with an ACL for every topic, beside a broker without an authorizer.

    python -m bench.acls [--rounds 5] [--operations 40000] [--topics 200]

Two brokers of this checkout with the same topics, both on PLAINTEXT, take turns eight times within each round, so that what else the
machine does falls on both. Every record is a batch and a request of its own, both ways, so that no batching hides what a request costs.
Printed are each broker's CPU microseconds for one operation, the median of the rounds, and the median of the rounds' ratios, which may
be 1.03 at most: beyond it the command ends with status 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from bench.systems import Headrace
from bench.systems.kafka_protocol import RunningKafka

MOST = 1.03
TURNS = 8
SIZE = 1000
ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The cluster itself has no ACL; each topic has one, which alone decides.
    "allow.everyone.if.no.acl.found": "true",
}
BROKERS = {"none": {}, "ACLs": ACLS}
KINDS = ("produce", "fetch")


def topics(count: int) -> list[str]:
    return [f"topic-{number:04d}" for number in range(count)]


def prepare(broker: RunningKafka, names: list[str], guarded: bool, operations: int) -> None:
    wanted = [NewTopic(name, 1, 1) for name in names]
    for made in broker.admin.create_topics(wanted, operation_timeout=60).values():
        made.result()
    if guarded:
        acls = [
            AclBinding(
                ResourceType.TOPIC,
                name,
                ResourcePatternType.LITERAL,
                "User:ANONYMOUS",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for name in names
            for operation in (AclOperation.READ, AclOperation.WRITE)
        ]
        for added in broker.admin.create_acls(acls).values():
            added.result()
    produce(broker, names[0], operations)


def cpu_microseconds(broker: RunningKafka) -> float:
    """Of all its threads, as the scheduler counts it: the clock ticks of /proc/PID/stat are too coarse for a short turn."""
    schedules = [
        path for each in broker.processes for path in Path(f"/proc/{each.pid}/task").glob("*/schedstat")
    ]
    return sum(int(path.read_text().split()[0]) for path in schedules) / 1000


def produce(broker: RunningKafka, topic: str, operations: int) -> float:
    """CPU microseconds for one request that writes one record."""
    single = {**broker.one_by_one, "in_flight": 1000}
    before = cpu_microseconds(broker)
    answer = broker.load("produce", topic=topic, records=operations, size=SIZE, time_limit=300, **single)
    return (cpu_microseconds(broker) - before) / answer["records"]


def fetch(broker: RunningKafka, topic: str, operations: int) -> float:
    """CPU microseconds for one request that reads one record: no second one fits."""
    small = {"partition_bytes": SIZE, "queue_records": 100_000}
    before = cpu_microseconds(broker)
    answer = broker.load("consume", topic=topic, records=operations, time_limit=300, **small)
    return (cpu_microseconds(broker) - before) / answer["records"]


def measure(rounds: int, operations: int, count: int) -> dict[str, list[tuple[float, float]]]:
    """For each kind of operation the figures of every round: without and with ACLs."""
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    names, system = topics(count), Headrace()
    system.prepare()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = {
            name: stack.enter_context(system.start(home / name / "data", settings))
            for name, settings in BROKERS.items()
        }
        for name, broker in running.items():
            prepare(broker, names, bool(BROKERS[name]), operations)
        for number in range(rounds):
            for kind in KINDS:
                spent = dict.fromkeys(BROKERS, 0.0)
                for turn in range(TURNS):
                    for name in list(BROKERS)[:: 1 if turn % 2 == 0 else -1]:
                        operate = produce if kind == "produce" else fetch
                        topic = names[0] if kind == "fetch" else names[1 + number % (count - 1)]
                        spent[name] += operate(running[name], topic, operations // TURNS) / TURNS
                found[kind].append((spent["none"], spent["ACLs"]))
                print(
                    f"round {number + 1}, {kind}: {spent['none']:.1f} and {spent['ACLs']:.1f} µs",
                    file=sys.stderr,
                )
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument(
        "--operations", type=int, default=40_000, help="in each round, of each kind, to each broker"
    )
    arguments.add_argument(
        "--topics", type=int, default=200, help="each with an ACL to read and one to write it"
    )
    given = arguments.parse_args()
    worst = 0.0
    measured = measure(given.rounds, given.operations, max(given.topics, 2))
    print("| CPU µs for one | without | with ACLs | ratio | its rounds |\n| --- | --- | --- | --- | --- |")
    for kind, rounds in measured.items():
        without, with_acls = (statistics.median(side) for side in zip(*rounds, strict=True))
        ratios = [after / before for before, after in rounds]
        worst = max(worst, statistics.median(ratios))
        listed = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"| {kind} | {without:.1f} | {with_acls:.1f} | {statistics.median(ratios):.3f} | {listed} |")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
