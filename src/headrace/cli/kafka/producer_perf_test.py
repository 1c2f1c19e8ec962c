"""kafka-producer-perf-test.sh"""

from __future__ import annotations

import sys
import uuid
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, key_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.client.load.produce import Result, Window


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    _check(parser, options)
    try:
        settings = key_values(options.producer_props, "--producer-props", options.command_config)
        transaction_seconds = _transactions(options, settings)
        servers = settings.pop("bootstrap.servers", None) or options.bootstrap_server
        settings.setdefault("client.id", "perf-producer-client")

        from headrace.cli.cluster.connection import connect
        from headrace.client.load.produce import SETTINGS, Load
        from headrace.client.load.produce import run as produce

        payloads = _payloads(options)
        cluster = connect(servers, extra=settings)
        load = Load(
            options.topic,
            payloads,
            options.num_records,
            options.throughput if options.throughput > 0 else None,
            transaction_seconds,
            options.reporting_interval / 1000,
        )
        with cluster.failures():
            result = produce(cluster.producer(SETTINGS), load, on_window=_print_window)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    _print_total(result)
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("producer-perf-test", "Verify the performance of producing.")
    parser.bootstrap()
    parser.flag("--topic", required=True, help="The topic to produce to.")
    parser.flag("--num-records", old=("--messages",), type=int, required=True, help="How many records.")
    parser.flag("--record-size", old=("--message-size",), type=int, help="Bytes of a record.")
    parser.flag("--payload-file", type=Path, metavar="FILE", help="Send pieces of this file instead.")
    parser.switch("--payload-monotonic", help="Send numbers that grow instead.")
    parser.flag("--payload-delimiter", default="\\n", help="What separates the pieces of --payload-file.")
    parser.flag("--throughput", type=float, default=-1.0, help="Records a second; -1: no limit.")
    parser.flag(
        "--command-property",
        old=("--producer-props",),
        dest="producer_props",
        nargs="+",
        metavar="KEY=VALUE",
        help="Producer settings, such as bootstrap.servers, acks, linger.ms.",
    )
    parser.command_config("--producer.config")
    parser.flag("--transactional-id", help="Produce in transactions under this id.")
    parser.flag("--transaction-duration-ms", type=int, help="How long a transaction lasts.")
    parser.flag("--reporting-interval", type=int, default=5000, metavar="MS", help="Time between reports.")
    parser.obsolete(
        {"--print-metrics": "is ignored: Java's client metrics are not available here."}, takes_value=False
    )
    return parser


def _check(parser: KafkaParser, options: Namespace) -> None:
    if options.num_records <= 0:
        parser.error("--num-records should be greater than zero")
    if options.record_size is not None and options.record_size <= 0:
        parser.error("--record-size should be greater than zero")
    if (
        sum((options.record_size is not None, options.payload_file is not None, options.payload_monotonic))
        != 1
    ):
        parser.error("one of the arguments --record-size --payload-file --payload-monotonic is required")
    if options.transaction_duration_ms is not None and options.transaction_duration_ms <= 0:
        parser.error("--transaction-duration-ms should be greater than zero")


def _payloads(options: Namespace) -> Iterator[bytes]:
    from headrace.client.errors import ClientError
    from headrace.client.load import payloads

    if options.payload_monotonic:
        return payloads.growing()
    if options.payload_file is None:
        return payloads.letters(options.record_size)
    print(f"Reading payloads from: {options.payload_file.absolute()}")
    delimiter = "\n" if options.payload_delimiter == "\\n" else options.payload_delimiter
    try:
        source, count = payloads.from_file(options.payload_file, delimiter)
    except ClientError as error:
        raise Failure(str(error)) from None
    print(f"Number of messages read: {count}")
    return source


def _transactions(options: Namespace, settings: dict[str, str]) -> float | None:
    """How long each transaction lasts, in seconds; None without transactions."""
    named = options.transactional_id or settings.get("transactional.id")
    if options.transaction_duration_ms is None and named is None:
        return None
    settings["transactional.id"] = named or f"performance-producer-{uuid.uuid4()}"
    return float(options.transaction_duration_ms or 3000) / 1000


def _print_window(window: Window) -> None:
    rate = window.throughput
    print(
        f"{rate.records} records sent, {rate.records_per_second:.1f} records/sec "
        f"({rate.mebibytes_per_second:.2f} MB/sec), {window.average_latency:.1f} ms avg latency, "
        f"{window.max_latency:.1f} ms max latency.",
        flush=True,
    )


def _print_total(result: Result) -> None:
    rate, latency = result.throughput, result.latency
    print(
        f"{rate.records} records sent, {rate.records_per_second:.1f} records/sec "
        f"({rate.mebibytes_per_second:.2f} MB/sec), {latency.average:.2f} ms avg latency, "
        f"{latency.max:.2f} ms max latency, {latency.p50:.0f} ms 50th, {latency.p95:.0f} ms 95th, "
        f"{latency.p99:.0f} ms 99th, {latency.p999:.0f} ms 99.9th."
    )
