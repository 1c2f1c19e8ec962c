"""kafka-transactions.sh"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

COMMANDS = {
    "list": "List transactions.",
    "describe": "Describe the state of an active transactional id.",
    "describe-producers": "Describe the states of active producers for a topic partition.",
    "abort": "Abort a hanging transaction.",
    "find-hanging": "Find hanging transactions.",
}


def run(arguments: list[str]) -> int:
    options = _parser().parse(arguments)
    try:
        if options.command is None:
            raise Failure(f"Say what to do: {', '.join(COMMANDS)}.")
        _check(options)

        from headrace.cli.cluster.connection import connect

        _RUN[options.command](connect(options.bootstrap_server, options.command_config), options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser(
        "transactions", "Analyze the transactional state of producers; end hanging transactions."
    )
    parser.bootstrap()
    parser.command_config()
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND", help=", ".join(COMMANDS))
    parser.flag("--duration-filter", type=int, metavar="MS", help="list: only transactions running longer.")
    parser.flag("--transactional-id-pattern", metavar="REGEX", help="list: only ids that match.")
    parser.flag("--transactional-id", metavar="ID", help="describe: the transactional id.")
    parser.flag("--topic", help="describe-producers, abort, find-hanging: the topic.")
    parser.flag("--partition", type=int, help="describe-producers, abort, find-hanging: the partition.")
    parser.flag(
        "--broker-id", type=int, metavar="ID", help="describe-producers, find-hanging: the broker to ask."
    )
    parser.flag("--start-offset", type=int, metavar="OFFSET", help="abort: where the transaction begins.")
    parser.flag("--producer-id", type=int, metavar="ID", help="abort, for brokers before 3.0: whose it is.")
    parser.flag("--producer-epoch", type=int, metavar="EPOCH", help="abort: with --producer-id.")
    parser.flag("--coordinator-epoch", type=int, metavar="EPOCH", help="abort: with --producer-id.")
    parser.flag(
        "--max-transaction-timeout",
        type=int,
        default=15,
        metavar="MINUTES",
        help="find-hanging: the longest a transaction may take (default: 15).",
    )
    return parser


def _check(options: Namespace) -> None:
    needed = {
        "describe": ("transactional_id",),
        "describe-producers": ("topic", "partition"),
        "abort": ("topic", "partition"),
    }
    for name in needed.get(options.command, ()):
        if getattr(options, name) is None:
            raise Failure(f"argument --{name.replace('_', '-')} is required")
    if options.command == "abort" and options.start_offset is None:
        if options.producer_id is None:
            raise Failure(
                "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) "
                "or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
            )
        for name in ("producer_epoch", "coordinator_epoch"):
            if getattr(options, name) is None:
                raise Failure(f"Missing required argument --{name.replace('_', '-')}")
    if options.command == "find-hanging":
        if options.topic is None and options.broker_id is None:
            raise Failure(
                "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
            )
        if options.partition is not None and options.topic is None:
            raise Failure("The --partition argument requires --topic to be provided")


def _list(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import transactions

    duration = -1 if options.duration_filter is None else options.duration_filter
    found = cluster.call(
        transactions.listings, longer_than_ms=duration, pattern=options.transactional_id_pattern
    )
    _print_table(
        ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
        [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found],
    )


def _describe(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import transactions

    found = cluster.call(transactions.describe, options.transactional_id)
    _print_table(
        (
            "CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState",
            "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions",
        ),
        [
            (
                found.coordinator, found.transactional_id, found.producer_id, found.producer_epoch, found.state,
                found.timeout_ms, found.started_ms, found.duration_ms,
                ",".join(f"{topic}-{index}" for topic, index in found.partitions),
            )
        ],
    )  # fmt: skip


def _describe_producers(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import transactions

    found = cluster.call(transactions.producers, (options.topic, options.partition), options.broker_id)
    _print_table(
        (
            "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
            "CurrentTransactionStartOffset",
        ),
        [
            (
                each.producer_id, each.producer_epoch, each.coordinator_epoch, each.last_sequence,
                each.last_timestamp, each.start_offset,
            )
            for each in found
        ],
    )  # fmt: skip


def _abort(cluster: Cluster, options: Namespace) -> None:
    from headrace.cli.cluster.transactions import no_transaction_at
    from headrace.client.administration import transactions

    partition = (options.topic, options.partition)
    if options.start_offset is not None:
        if cluster.call(transactions.abort_at, partition, options.start_offset) is None:
            raise no_transaction_at(*partition, options.start_offset)
    else:
        cluster.call(
            transactions.abort,
            partition,
            options.producer_id,
            options.producer_epoch,
            options.coordinator_epoch,
        )


def _find_hanging(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import transactions

    found = cluster.call(
        transactions.find_hanging,
        topic=options.topic,
        partition=options.partition,
        broker_id=options.broker_id,
        longer_than_ms=options.max_transaction_timeout * 60_000,
    )
    _print_table(
        (
            "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
            "LastTimestamp", "Duration(min)",
        ),
        [
            (
                each.topic, each.partition, each.producer_id, each.producer_epoch, each.coordinator_epoch,
                each.start_offset, each.last_timestamp, each.open_minutes,
            )
            for each in found
        ],
    )  # fmt: skip


_RUN = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
}


def _print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as Kafka's tool pads them: to the left, each followed by a tab."""
    cells = [list(header), *(["None" if value is None else str(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    for line in cells:
        print("".join(f"{cell.ljust(width)}\t" for cell, width in zip(line, widths, strict=True)))
