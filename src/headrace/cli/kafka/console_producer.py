"""kafka-console-producer.sh"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, key_values

if TYPE_CHECKING:
    from headrace.cli.cluster.sink import Sink

_READERS = ("LineMessageReader", "ConsoleProducer$LineMessageReader")
# Flags that set a producer setting of another name.
_SETTINGS = {
    "batch_size": "batch.size",
    "max_partition_memory_bytes": "batch.size",
    "message_send_max_retries": "retries",
    "retry_backoff_ms": "retry.backoff.ms",
    "timeout": "linger.ms",
    "request_required_acks": "acks",
    "request_timeout_ms": "request.timeout.ms",
    "metadata_expiry_ms": "metadata.max.age.ms",
    "max_memory_bytes": "buffer.memory",
    "socket_buffer_size": "send.buffer.bytes",
    "compression_codec": "compression.type",
}


def run(arguments: list[str]) -> int:
    options = _parser().parse(arguments)
    if options.line_reader.rpartition(".")[2] not in _READERS:
        raise Failure(
            f"The line reader {options.line_reader} is Java code; 'headrace produce --from-json' reads JSON."
        )
    reader = key_values(options.reader_property, "--reader-property", options.reader_config)
    given = {
        name: str(value) for flag, name in _SETTINGS.items() if (value := getattr(options, flag)) is not None
    }
    producer = key_values(options.producer_property, "--command-property", options.command_config)

    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.sink import Sink
    from headrace.cli.view.records.line_format import LineFormat

    line_format = LineFormat.from_properties(reader)
    cluster = connect(options.bootstrap_server, extra={"client.id": "console-producer", **producer, **given})
    with Sink(cluster, options.topic, {}) as sink:
        for number, line in enumerate(_lines(sink), 1):
            sink.send(line_format.parse(line, number), wait=options.sync)
    return Exit.OK


def _lines(sink: Sink) -> Iterator[bytes]:
    from headrace.cli.view.records.lines import read_lines

    prompt = sys.stdin.isatty() and sys.stdout.isatty()
    lines = read_lines(sys.stdin.fileno(), sink.poll)
    while True:
        if prompt:
            print(">", end="", flush=True)
        line = next(lines, None)
        if line is None:
            return
        yield line


def _parser() -> KafkaParser:
    parser = KafkaParser("console-producer", "Read data from standard input and publish it to a topic.")
    parser.bootstrap(broker_list=True)
    parser.flag("--topic", required=True, help="The topic to produce to.")
    parser.switch("--sync", help="Wait for each record before sending the next.")
    parser.flag(
        "--compression-codec",
        nargs="?",
        const="gzip",
        help="none, gzip, snappy, lz4 or zstd; without a value, gzip.",
    )
    parser.flag("--batch-size", type=int, help="Bytes in a batch (batch.size).")
    parser.flag("--message-send-max-retries", type=int, help="Retries of a failed send (retries).")
    parser.flag("--retry-backoff-ms", type=int, help="Wait before a retry (retry.backoff.ms).")
    parser.flag("--timeout", type=int, help="How long a batch waits for more records (linger.ms).")
    parser.flag("--request-required-acks", help="0, 1 or -1/all (acks).")
    parser.flag("--request-timeout-ms", type=int, help="How long a request may take (request.timeout.ms).")
    parser.flag("--metadata-expiry-ms", type=int, help="How old metadata may get (metadata.max.age.ms).")
    parser.flag("--max-block-ms", type=int, help="How long a send may block.")
    parser.flag("--max-memory-bytes", type=int, help="Memory for records that wait (buffer.memory).")
    parser.flag("--max-partition-memory-bytes", type=int, help="Bytes in a batch (batch.size).")
    parser.flag("--socket-buffer-size", type=int, help="The socket's send buffer (send.buffer.bytes).")
    parser.flag(
        "--line-reader",
        default=_READERS[0],
        metavar="CLASS",
        help="How lines become records; Kafka's own reader only.",
    )
    parser.flag(
        "--reader-property",
        old=("--property",),
        action="append",
        metavar="KEY=VALUE",
        help="parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, headers.key.separator, "
        "null.marker, ignore.error",
    )
    parser.flag("--reader-config", type=Path, metavar="FILE", help="A file of reader properties.")
    parser.flag(
        "--command-property",
        old=("--producer-property",),
        dest="producer_property",
        action="append",
        metavar="KEY=VALUE",
        help="A producer setting.",
    )
    parser.command_config("--producer.config")
    parser.obsolete(
        {
            "--queue-size": "was the old producer's and is ignored; --max-memory-bytes bounds what may wait.",
            "--queue-enqueuetimeout-ms": "was the old producer's and is ignored; --max-block-ms bounds the wait.",
            "--key-serializer": "is ignored: lines are sent as the bytes they are.",
            "--value-serializer": "is ignored: lines are sent as the bytes they are.",
        },
        takes_value=True,
    )
    parser.obsolete(
        {
            "--old-producer": "is ignored: there is one producer.",
            "--new-producer": "is ignored: there is one producer.",
            "--async": "is ignored: sending is asynchronous unless --sync is given.",
        },
        takes_value=False,
    )
    return parser
