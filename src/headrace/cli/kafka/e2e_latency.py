"""kafka-e2e-latency.sh"""

from __future__ import annotations

import sys

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser
from headrace.cli.parsing import properties


def run(arguments: list[str]) -> int:
    options = _parser().parse(_as_flags(arguments))
    if options.producer_acks not in ("1", "all", "-1"):
        print("Latency testing requires synchronous acknowledgement. Please use 1 or all", file=sys.stderr)
        return Exit.FAILED
    try:
        _measure(
            options.bootstrap_server,
            options.topic,
            options.num_records,
            options.producer_acks,
            options.record_size,
            properties.load(options.command_config) if options.command_config else {},
        )
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("e2e-latency", "Measure the time from producing a record to consuming it.")
    parser.bootstrap(broker_list=True)
    parser.flag("--topic", required=True, help="The topic; made with one partition if it is not there.")
    parser.flag("--num-records", old=("--num-messages",), type=int, required=True, help="How many records.")
    parser.flag("--producer-acks", old=("--acks",), default="1", help="1 or all.")
    parser.flag(
        "--record-size", old=("--message-size", "--size"), type=int, required=True, help="Bytes of a record."
    )
    parser.command_config("--producer.config")
    return parser


def _as_flags(arguments: list[str]) -> list[str]:
    """Up to 4.1 the tool took positions: broker_list topic num_messages acks size [properties_file]."""
    if len(arguments) not in (5, 6) or any(argument.startswith("--") for argument in arguments):
        return arguments
    names = (
        "--bootstrap-server",
        "--topic",
        "--num-records",
        "--producer-acks",
        "--record-size",
        "--command-config",
    )
    return [word for pair in zip(names, arguments, strict=False) for word in pair]


def _measure(servers: str, topic: str, count: int, acks: str, size: int, settings: dict[str, str]) -> None:
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import topics
    from headrace.client.load.end_to_end import CONSUMER, PRODUCER, SMALLEST, Load, run

    cluster = connect(servers, extra=settings)
    if topic not in cluster.call(topics.names, internal=True):
        print(
            f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
        )
        for refused in cluster.call(topics.create, [topic], partitions=1, replication_factor=1).values():
            raise Failure(str(refused))

    def report(number: int, seconds: float) -> None:
        if number % 1000 == 0:
            print(f"{number}\t{seconds * 1000}", flush=True)

    load = Load(cluster.call(topics.partitions_of, [topic]), count, max(size, SMALLEST))
    producer, consumer = cluster.producer({**PRODUCER, "acks": acks}), cluster.consumer(CONSUMER)
    with cluster.failures():
        latencies = run(producer, consumer, load, report).summary()
    print(f"Avg latency: {latencies.average:.4f} ms")
    print(
        f"Percentiles: 50th = {latencies.p50:.0f}, 99th = {latencies.p99:.0f}, 99.9th = {latencies.p999:.0f}"
    )
