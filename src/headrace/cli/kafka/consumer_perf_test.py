"""kafka-consumer-perf-test.sh"""

from __future__ import annotations

import random
import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, key_values

if TYPE_CHECKING:
    from headrace.client.load.consume import Result, Window

_MEBIBYTE = 1024 * 1024
_COLUMNS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    if options.reporting_interval <= 0:
        parser.error("Reporting interval must be greater than 0.")
    try:
        settings = _settings(options)

        from headrace.cli.cluster.connection import connect
        from headrace.client.load.consume import SETTINGS, Load
        from headrace.client.load.consume import run as consume

        cluster = connect(options.bootstrap_server, extra=settings)
        if not options.hide_header:
            first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
            print(f"{first}, {_COLUMNS}", flush=True)
        load = Load(
            options.topic,
            options.messages,
            idle_timeout=options.timeout / 1000,
            window_seconds=options.reporting_interval / 1000,
        )
        consumer = cluster.consumer({**SETTINGS, "group.id": options.group, "enable.auto.commit": True})
        with cluster.failures():
            result = consume(
                consumer, load, on_window=_print_window if options.show_detailed_stats else lambda _: None
            )
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    if result.throughput.records < options.messages:
        print(
            f"WARNING: Exiting before consuming the expected number of messages: timeout ({options.timeout} ms) "
            "exceeded. You can use the --timeout option to increase the timeout."
        )
    if not options.show_detailed_stats:
        _print_total(result)
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("consumer-perf-test", "Verify the performance of consuming.")
    parser.bootstrap(broker_list=True)
    parser.flag("--topic", required=True, help="The topic to consume.")
    parser.flag("--messages", old=("--num-records",), type=int, required=True, help="How many messages.")
    parser.flag("--group", default=f"perf-consumer-{random.randrange(100_000)}", help="The consumer group.")
    parser.flag(
        "--fetch-size", type=int, default=1024 * 1024, help="Bytes to fetch from a partition at a time."
    )
    parser.flag(
        "--socket-buffer-size", type=int, default=2 * 1024 * 1024, help="The socket's receive buffer."
    )
    parser.switch("--from-latest", help="Start with the latest message if the group has no offset.")
    parser.flag(
        "--timeout", type=int, default=10_000, metavar="MS", help="The longest time without a message."
    )
    parser.flag("--reporting-interval", type=int, default=5000, metavar="MS", help="Time between reports.")
    parser.switch("--show-detailed-stats", help="Report at every interval, not at the end.")
    parser.switch("--hide-header", help="Without the header line.")
    parser.flag(
        "--command-property",
        old=("--consumer-property",),
        action="append",
        metavar="KEY=VALUE",
        help="A consumer setting.",
    )
    parser.command_config("--consumer.config")
    parser.obsolete(
        {
            "--print-metrics": "is ignored: Java's client metrics are not available here.",
            "--new-consumer": "is ignored: there is one consumer.",
        },
        takes_value=False,
    )
    parser.obsolete(
        {
            "--threads": "left Kafka in 3.0 and is ignored; run the tool several times with one --group.",
            "--num-fetch-threads": "left Kafka in 3.0 and is ignored; run the tool several times with one --group.",
            "--date-format": "is ignored: times are printed as yyyy-MM-dd HH:mm:ss:SSS.",
        },
        takes_value=True,
    )
    return parser


def _settings(options: Namespace) -> dict[str, str]:
    settings = key_values(options.command_property, "--command-property", options.command_config)
    settings.setdefault("client.id", "perf-consumer-client")
    settings.update(
        {
            "group.id": options.group,
            "receive.buffer.bytes": str(options.socket_buffer_size),
            "max.partition.fetch.bytes": str(options.fetch_size),
            "auto.offset.reset": "latest" if options.from_latest else "earliest",
        }
    )
    return settings


def _print_total(result: Result) -> None:
    joining = round(result.joining_seconds * 1000)
    fetching = max(round(result.throughput.seconds * 1000) - joining, 1)
    total, seconds = result.throughput, fetching / 1000
    print(
        f"{_moment(result.started)}, {_moment(result.ended)}, {total.bytes / _MEBIBYTE:.4f}, "
        f"{total.mebibytes_per_second:.4f}, {total.records}, {total.records_per_second:.4f}, {joining}, {fetching}, "
        f"{total.bytes / _MEBIBYTE / seconds:.4f}, {total.records / seconds:.4f}"
    )


def _print_window(window: Window) -> None:
    recent, joining = window.recent, round(window.joining_seconds * 1000)
    fetching = round(recent.seconds * 1000) - joining
    seconds = fetching / 1000
    fetch_size = recent.bytes / _MEBIBYTE / seconds if fetching > 0 else 0.0
    fetch_records = recent.records / seconds if fetching > 0 else 0.0
    print(
        f"{_moment(time.time())}, 0, {window.total.bytes / _MEBIBYTE:.4f}, {recent.mebibytes_per_second:.4f}, "
        f"{window.total.records}, {recent.records_per_second:.4f}, {joining}, {fetching}, "
        f"{fetch_size:.4f}, {fetch_records:.4f}",
        flush=True,
    )


def _moment(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    return f"{whole}:{int(seconds * 1000) % 1000:03d}"
