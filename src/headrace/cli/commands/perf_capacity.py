"""`headrace perf capacity`: the highest rate that a topic and a consumer sustain within a latency bound."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import properties, times
from headrace.cli.view import output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.cli.cluster.connection import Cluster
    from headrace.client.load.capacity import Capacity
    from headrace.client.load.open_loop import Bound, Step

_PERCENTILE = re.compile(r"^(?:p(?P<share>\d{1,2}(?:\.\d+)?)|(?P<max>max))=(?P<limit>.+)$")

EPILOG = options.examples(
    "headrace perf capacity                                          # a scratch topic, p99 within 50 ms",
    "headrace perf capacity --topic orders --size 1000 --max-latency p99.9=100ms",
    "headrace perf capacity --partitions 12 --acks 1 --duration 30s --handling 2ms",
    "headrace perf capacity --topic load-test --into-existing --json",
)


def capacity(
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC",
            help="Measure a scratch topic made like this one.",
            autocompletion=options.complete_topic,
        ),
    ] = None,
    into_existing: Annotated[
        bool,
        typer.Option(
            "--into-existing", help="Write to --topic itself: its consumers get the test's records."
        ),
    ] = False,
    max_latency: Annotated[
        str,
        typer.Option(
            "--max-latency", metavar="PERCENTILE=DURATION", help="The bound, end to end: p99=50ms, max=1s."
        ),
    ] = "p99=50ms",
    size: Annotated[int, typer.Option("--size", min=28, help="Bytes of a record.")] = 100,
    duration: Annotated[
        str, typer.Option("--duration", metavar="DURATION", help="How long each rate is held.")
    ] = "10s",
    acks: Annotated[str, typer.Option("--acks", help="0, 1 or all.")] = "all",
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Of the scratch topic.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", "-r", min=1, help="Of the scratch topic.")
    ] = None,
    handling: Annotated[
        str,
        typer.Option(
            "--handling", metavar="DURATION", help="How long the consumer takes for a record, as yours does."
        ),
    ] = "0s",
    start: Annotated[float, typer.Option("--start", min=1, help="Records a second to begin with.")] = 1_000,
    max_rate: Annotated[
        float, typer.Option("--max-rate", min=1, help="Records a second that are enough.")
    ] = 1_000_000,
    precision: Annotated[
        float, typer.Option("--precision", min=0.01, max=1, help="How near the two rates must come.")
    ] = 0.1,
    setting: Annotated[
        list[str] | None,
        typer.Option("--property", "-P", metavar="KEY=VALUE", help="A client setting; may be repeated."),
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Find the highest rate at which records arrive within a latency bound: doubled until it fails, then bisected.

    Each record is timed from the moment at which it was due until the consumer has it, so that waiting counts (an open loop, no
    coordinated omission). The scratch topic is deleted at the end. One producer and one consumer in one Python process: when they are the
    limit, the result says so.
    """
    options.choose("--acks", acks, ("0", "1", "all"))
    if into_existing and topic is None:
        raise Misuse("--into-existing belongs to --topic.")
    if into_existing and (partitions is not None or replication_factor is not None):
        raise Misuse(
            "--partitions and --replication-factor are for a scratch topic; leave out --into-existing."
        )
    held, busy = times.seconds_of(duration), times.seconds_of(handling)
    if held <= 0 or busy < 0:
        raise Misuse("--duration takes a duration above 0, such as 10s.")
    bound = _bound(max_latency)
    extra = properties.from_arguments(setting or [], "--property")

    from headrace.cli.cluster.connection import connect
    from headrace.client.administration.topics import partitions_of
    from headrace.client.load.capacity import find
    from headrace.client.load.open_loop import CONSUMER, PRODUCER, OpenLoop

    cluster = connect(bootstrap, command_config, extra)
    with _target(cluster, topic, into_existing, partitions, replication_factor) as name:
        places = cluster.call(partitions_of, [name])
        if not json:
            print(
                f"Measuring {name} with {output.count(len(places), 'partition')}: {size} B records, acks={acks}, {max_latency}, "
                f"{duration} a step.",
                flush=True,
            )
        producer = cluster.producer({**PRODUCER, "acks": acks})
        consumer = cluster.consumer(CONSUMER)
        try:
            with cluster.failures():
                loop = OpenLoop(producer, consumer, places, size, busy)
                found = find(
                    loop,
                    bound,
                    held,
                    start=start,
                    highest=max_rate,
                    precision=precision,
                    on_step=lambda step: None if json else _show_step(step, bound),
                )
        finally:
            consumer.close()
    if json:
        output.json_document(_document(found, bound, name, size))
    else:
        _show(found, bound, size)
    if found.sustained is None:
        raise Failure(
            f"No rate was sustained within {max_latency}, not even {_rate(found.steps[-1].rate)} records/s; allow more time with "
            "--max-latency, or see 'headrace doctor'."
        )


@contextmanager
def _target(
    cluster: Cluster, topic: str | None, into_existing: bool, partitions: int | None, factor: int | None
) -> Iterator[str]:
    from headrace.client.load.capacity import scratch_topic

    if topic is not None and into_existing:
        yield topic
        return
    with (
        cluster.failures(),
        scratch_topic(cluster.session, like=topic, partitions=partitions, replication_factor=factor) as name,
    ):
        yield name


def _bound(text: str) -> Bound:
    from headrace.client.load.open_loop import Bound

    match = _PERCENTILE.match(text.strip().lower())
    limit = times.seconds_of(match["limit"]) if match else 0.0
    if match is None or limit <= 0:
        raise Misuse(
            f"--max-latency takes a percentile and a duration, such as p99=50ms or max=1s, not '{text}'."
        )
    if match["max"]:
        return Bound(1.0, limit, "max")
    return Bound(float(match["share"]) / 100, limit, f"p{match['share']}")


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _show_step(step: Step, bound: Bound) -> None:
    wrong = step.shortfall(bound)
    times_ = f"p50 {step.latency.p50:,.1f}, p99 {step.latency.p99:,.1f}, max {step.latency.max:,.1f} ms"
    print(
        f"{_rate(step.rate):>12} records/s: {times_:<46} {f'not sustained: {wrong}' if wrong else 'sustained'}",
        flush=True,
    )


def _show(found: Capacity, bound: Bound, size: int) -> None:
    if found.sustained is None or found.plan_for is None:
        return
    best = found.sustained
    print(
        f"\nSustained: {_rate(best.rate)} records/s ({best.rate * size / 2**20:,.1f} MiB/s) with {bound.name} at {best.at_bound:,.1f} ms."
    )
    if found.failed is None:
        print("That was the highest rate asked for (--max-rate).")
    else:
        print(f"Not sustained: {_rate(found.failed.rate)} records/s, since {found.failed.shortfall(bound)}.")
        if found.failed.client_was_late:
            print(
                "So this client was the limit, and the cluster takes more: measure from several machines at once."
            )
    print(
        f"Plan for {_rate(found.plan_for)} records/s: the rest is for peaks within a second, a broker that is down, and catching up."
    )


def _document(found: Capacity, bound: Bound, topic: str, size: int) -> dict[str, Any]:
    def step(each: Step | None) -> dict[str, Any] | None:
        if each is None:
            return None
        wrong = each.shortfall(bound)
        return {
            "records_per_second": each.rate,
            "mebibytes_per_second": each.rate * size / 2**20,
            "sent": each.sent,
            "arrived": each.arrived,
            "sustained": not wrong,
            "reason": wrong or None,
            "latency_ms": {**asdict(each.latency), "at_bound": each.at_bound},
        }

    return {
        "topic": topic,
        "bound": {"percentile": bound.name, "ms": bound.seconds * 1000},
        "size": size,
        "sustained": step(found.sustained),
        "not_sustained": step(found.failed),
        "plan_for_records_per_second": found.plan_for,
        "client_was_the_limit": found.failed is not None and found.failed.client_was_late,
        "steps": [step(each) for each in found.steps],
    }
