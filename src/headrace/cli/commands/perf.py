"""`headrace perf`: load tests, to know before the day."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.commands.perf_capacity import EPILOG, capacity
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import properties
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.load.numbers import LatencySummary, Throughput

app = options.command_app("Load-test a cluster: produce, consume, end to end, and what it sustains.")
app.command(epilog=EPILOG)(capacity)

Property = Annotated[
    list[str] | None,
    typer.Option("--property", "-P", metavar="KEY=VALUE", help="A client setting; may be repeated."),
]
Acks = Annotated[str, typer.Option("--acks", help="0, 1 or all.")]


@app.command(
    epilog=options.examples(
        "headrace perf produce load --records 1000000 --size 100",
        "headrace perf produce load --records 60000 --rate 1000 --acks all --compression lz4",
    )
)
def produce(
    topic: options.Topic,
    records: Annotated[int, typer.Option("--records", "-n", min=1, help="How many records.")] = 1_000_000,
    size: Annotated[int, typer.Option("--size", min=1, help="Bytes of a record.")] = 100,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Send lines of a file instead.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, help="Records a second; default: all it takes.")
    ] = None,
    acks: Acks = "1",
    compression: Annotated[
        str, typer.Option("--compression", help="none, gzip, snappy, lz4 or zstd.")
    ] = "none",
    setting: Property = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Write records and time their acknowledgement."""
    extra = properties.from_arguments(setting or [], "--property")

    from headrace.cli.cluster.connection import connect
    from headrace.cli.view.progress import Progress
    from headrace.client.administration.topics import partitions_of
    from headrace.client.load import payloads
    from headrace.client.load.produce import SETTINGS, Load, run

    cluster = connect(bootstrap, command_config, extra)
    cluster.call(partitions_of, [topic])
    producer = cluster.producer({**SETTINGS, "acks": acks, "compression.type": compression})
    with cluster.failures(), Progress(f"Writing to {topic}", records, "records") as progress:
        source = payloads.letters(size) if file is None else payloads.from_file(file, "\n")[0]
        result = run(producer, Load(topic, source, records, rate), progress.advance)
    _report("Wrote", result.throughput, result.latency, json)


@app.command(
    epilog=options.examples(
        "headrace perf consume load --records 1000000", "headrace perf consume load --group readers"
    )
)
def consume(
    topic: options.Topic,
    records: Annotated[
        int | None, typer.Option("--records", "-n", min=1, help="How many records; default: all there are.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", "-g", help="Read as a member of a group.")] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, help="Seconds without a record before giving up.")
    ] = 10.0,
    setting: Property = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Read records from the beginning."""
    extra = properties.from_arguments(setting or [], "--property")

    from headrace.cli.cluster.connection import connect
    from headrace.cli.view.progress import Progress
    from headrace.client.administration import offsets
    from headrace.client.administration.topics import partitions_of
    from headrace.client.load.consume import SETTINGS, Load, run

    cluster = connect(bootstrap, command_config, extra)
    there = cluster.call(partitions_of, [topic])
    if records is None:
        ends, starts = cluster.call(offsets.latest, there), cluster.call(offsets.earliest, there)
        records = sum(ends.values()) - sum(starts.values())
    load = Load(topic, records, there if group is None else None, timeout)
    consumer = cluster.consumer(
        {**SETTINGS, "group.id": group or "headrace-perf", "enable.auto.commit": group is not None}
    )
    with cluster.failures(), Progress(f"Reading {topic}", records, "records") as progress:
        result = run(consumer, load, progress.advance)
    _report("Read", result.throughput, None, json)
    if result.throughput.records < records:
        raise Failure(f"Only {result.throughput.records} of {records} records came; --timeout waits longer.")


@app.command(
    "end-to-end",
    epilog=options.examples(
        "headrace perf end-to-end latency --records 10000 --rate 1000",
        "headrace perf end-to-end latency --records 1000     # one after the other",
    ),
)
def end_to_end(
    topic: options.Topic,
    records: Annotated[int, typer.Option("--records", "-n", min=1, help="How many records.")] = 1_000,
    size: Annotated[int, typer.Option("--size", min=24, help="Bytes of a record.")] = 100,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, help="Records a second; default: each after the one before."),
    ] = None,
    acks: Acks = "all",
    setting: Property = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Time records from the producer's hand to the consumer's."""
    if acks == "0":
        raise Misuse("End-to-end latency needs acknowledgements; use --acks 1 or all.")
    extra = properties.from_arguments(setting or [], "--property")

    from headrace.cli.cluster.connection import connect
    from headrace.cli.view.progress import Progress
    from headrace.client.administration.topics import partitions_of
    from headrace.client.load.end_to_end import CONSUMER, PRODUCER, Load, run

    cluster = connect(bootstrap, command_config, extra)
    load = Load(cluster.call(partitions_of, [topic]), records, size, rate)
    producer, consumer = cluster.producer({**PRODUCER, "acks": acks}), cluster.consumer(CONSUMER)
    with cluster.failures(), Progress(f"Through {topic}", records, "records") as progress:
        latencies = run(producer, consumer, load, lambda _, __: progress.advance(1))
    summary = latencies.summary()
    if json:
        output.json_document({"records": len(latencies), "latency_ms": asdict(summary)})
    else:
        print(f"{len(latencies):,} records went through {topic}.")
        print(_latency(summary))


def _report(verb: str, throughput: Throughput, latency: LatencySummary | None, json: bool) -> None:
    if json:
        document = {
            "records": throughput.records,
            "bytes": throughput.bytes,
            "seconds": throughput.seconds,
            "records_per_second": throughput.records_per_second,
            "mebibytes_per_second": throughput.mebibytes_per_second,
        }
        output.json_document(document if latency is None else {**document, "latency_ms": asdict(latency)})
        return
    print(
        f"{verb} {throughput.records:,} records in {throughput.seconds:.2f} s: "
        f"{throughput.records_per_second:,.0f} records/s, {throughput.mebibytes_per_second:,.1f} MiB/s"
    )
    if latency is not None:
        print(_latency(latency))


def _latency(summary: LatencySummary) -> str:
    return (
        f"Latency in ms: average {summary.average:.2f}, p50 {summary.p50:.2f}, p95 {summary.p95:.2f}, "
        f"p99 {summary.p99:.2f}, p99.9 {summary.p999:.2f}, max {summary.max:.2f}"
    )
