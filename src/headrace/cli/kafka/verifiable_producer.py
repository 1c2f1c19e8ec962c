"""kafka-verifiable-producer.sh: growing numbers, and a line of JSON for every answer."""

from __future__ import annotations

import json
import signal
import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, key_values

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message


def run(arguments: list[str]) -> int:
    parser = KafkaParser(
        "verifiable-producer", "Produce growing numbers to a topic, and print every answer as a line of JSON."
    )
    parser.bootstrap(broker_list=True)
    parser.flag("--topic", required=True, help="Where to.")
    parser.flag("--max-messages", type=int, default=-1, help="How many; -1: until the tool is stopped.")
    parser.flag("--throughput", type=int, default=-1, help="About how many a second; -1: as many as go.")
    parser.flag("--acks", default="-1", help="How many replicas have to have a record: 0, 1 or -1.")
    parser.flag(
        "--message-create-time", type=int, default=-1, metavar="MS", help="The time of the first record."
    )
    parser.flag("--value-prefix", type=int, help="A number and a dot before each value.")
    parser.flag("--repeating-keys", type=int, help="Keys from 0 up to this number, again and again.")
    parser.command_config("--producer.config")
    options = parser.parse(arguments)
    try:
        return _produce(options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED


def tell(name: str, **facts: object) -> None:
    """One line, as Kafka's tools write it."""
    fields = {"timestamp": round(time.time() * 1000), "name": name, **facts}
    print(json.dumps(fields, ensure_ascii=False, separators=(",", ":")), flush=True)


class Stop:
    """Whether somebody asked the tool to end."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


def _produce(options: Namespace) -> int:
    from headrace.cli.cluster.connection import connect

    settings = key_values(None, "", options.command_config)
    settings["acks"] = options.acks
    cluster = connect(options.bootstrap_server, extra=settings)
    producer = cluster.producer({})
    stop, acked, sent = Stop(), 0, 0

    def answered(error: KafkaError | None, message: Message) -> None:
        nonlocal acked
        key = message.key()
        facts = {"key": key.decode() if key is not None else None, "value": (message.value() or b"").decode()}
        if error is None:
            acked += 1
            tell(
                "producer_send_success",
                **facts,
                offset=message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )
        else:
            tell(
                "producer_send_error",
                **facts,
                topic=options.topic,
                exception=error.name(),
                message=error.str(),
            )

    tell("startup_complete")
    began = time.monotonic()
    while not stop.asked and (options.max_messages < 0 or sent < options.max_messages):
        value = f"{sent}" if options.value_prefix is None else f"{options.value_prefix}.{sent}"
        key = None if options.repeating_keys is None else str(sent % options.repeating_keys)
        when = time.time() * 1000 if options.message_create_time < 0 else options.message_create_time + sent
        try:
            producer.produce(options.topic, value, key, timestamp=round(when), on_delivery=answered)
        except BufferError:
            producer.poll(0.1)
            continue
        sent += 1
        producer.poll(0)
        if options.throughput > 0:
            due = began + sent / options.throughput
            while not stop.asked and (left := due - time.monotonic()) > 0:
                producer.poll(min(left, 0.1))
    producer.flush(30)
    tell("shutdown_complete")
    rate = acked / (time.monotonic() - began)
    tell("tool_data", sent=sent, acked=acked, target_throughput=options.throughput, avg_throughput=rate)
    return Exit.OK
