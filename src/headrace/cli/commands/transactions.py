"""`headrace transactions`: what producers have open, and ending what hangs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse, did_you_mean
from headrace.cli.parsing import times
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.administration.transactions import Description, Producer

app = options.command_app("List, describe and abort transactions; find hanging ones.")

PartitionNumber = Annotated[int, typer.Option("--partition", "-p", min=0, help="The partition.")]


@app.command(
    "list",
    epilog=options.examples(
        "headrace transactions list",
        "headrace transactions list --state ongoing --longer-than 5m",
        "headrace transactions list --pattern 'billing-.*'",
    ),
)
def list_(
    state: Annotated[str | None, typer.Option("--state", help="Only in these states, by commas.")] = None,
    longer_than: Annotated[
        str | None,
        typer.Option("--longer-than", metavar="DURATION", help="Only those open longer: 90s, 5m, 2h."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", metavar="REGEX", help="Only transactional ids that match (RE2)."),
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """List the transactional ids with their state."""
    duration = -1 if longer_than is None else round(times.seconds_of(longer_than) * 1000)
    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.choices import several
    from headrace.client.administration import transactions

    states = several(state, transactions.STATES, "states")
    cluster = connect(bootstrap, command_config)
    found = cluster.call(transactions.listings, states=states, longer_than_ms=duration, pattern=pattern)
    if json:
        output.json_document(
            [
                {
                    "transactional_id": each.transactional_id,
                    "coordinator": each.coordinator,
                    "producer_id": each.producer_id,
                    "state": each.state,
                }
                for each in found
            ]
        )
    elif found:
        header = ("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE")
        output.table(header, [(e.transactional_id, e.coordinator, e.producer_id, e.state) for e in found])
    else:
        output.note("There are no such transactional ids.")


@app.command(epilog=options.examples("headrace transactions describe billing-1"))
def describe(
    transactional_ids: Annotated[list[str], typer.Argument(metavar="TRANSACTIONAL_ID…")],
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show who owns a transactional id, the state of its transaction, and the partitions that it reached."""
    from headrace.cli.cluster.connection import Refused, connect
    from headrace.client.administration import transactions
    from headrace.wire.errors import ErrorCode

    cluster = connect(bootstrap, command_config)
    found = []
    for transactional_id in transactional_ids:
        try:
            found.append(cluster.call(transactions.describe, transactional_id))
        except Refused as refused:
            if refused.error != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            known = [listing.transactional_id for listing in cluster.call(transactions.listings)]
            hint = (
                did_you_mean(transactional_id, known) or " 'headrace transactions list' shows what there is."
            )
            raise Failure(refused.sentence + hint) from None
    if json:
        output.json_document([_described(each) for each in found])
        return
    for number, each in enumerate(found):
        is_open = each.duration_ms is not None and not each.state.startswith("Complete")
        since = f", open for {(each.duration_ms or 0) / 1000:,.1f} s" if is_open else ""
        print(
            ("\n" if number else "") + f"Transactional id {each.transactional_id}: {each.state}{since}, "
            f"producer {each.producer_id} epoch {each.producer_epoch}, "
            f"timeout {each.timeout_ms / 1000:g} s, coordinator {each.coordinator}"
        )
        if each.partitions:
            print("\n".join(f"  {line}" for line in output.columns(("TOPIC", "PARTITION"), each.partitions)))


@app.command(epilog=options.examples("headrace transactions producers orders --partition 0"))
def producers(
    topic: options.Topic,
    partition: PartitionNumber,
    broker: Annotated[
        int | None, typer.Option("--broker", help="Ask the replica on this broker, not the leader.")
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the producers that a partition remembers, and where their open transactions begin."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import transactions

    cluster = connect(bootstrap, command_config)
    found = cluster.call(transactions.producers, (topic, partition), broker)
    _show_producers(found, json, "The partition remembers no producers.")


@app.command(
    epilog=options.examples(
        "headrace transactions abort orders --partition 0 --start-offset 1042",
        "headrace transactions abort orders -p 0 --producer-id 7 --producer-epoch 3 --coordinator-epoch 0",
    )
)
def abort(
    topic: options.Topic,
    partition: PartitionNumber,
    start_offset: Annotated[
        int | None, typer.Option("--start-offset", min=0, help="Where the transaction begins.")
    ] = None,
    producer_id: Annotated[int | None, typer.Option("--producer-id", help="Whose, instead of where.")] = None,
    producer_epoch: Annotated[
        int | None, typer.Option("--producer-epoch", help="With --producer-id.")
    ] = None,
    coordinator_epoch: Annotated[
        int | None, typer.Option("--coordinator-epoch", help="With --producer-id.")
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Abort a hanging transaction in one partition, so that readers of committed records get past it."""
    identity = (producer_id, producer_epoch, coordinator_epoch)
    if start_offset is None and None in identity:
        raise Misuse(
            "Say which transaction: --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch."
        )
    if start_offset is not None and identity != (None, None, None):
        raise Misuse(
            "--start-offset says enough; leave out --producer-id and the epochs, or use them instead."
        )
    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.transactions import no_transaction_at
    from headrace.client.administration import transactions

    cluster = connect(bootstrap, command_config)
    where = f"{topic}-{partition}"
    if start_offset is not None:
        aborted = cluster.call(transactions.abort_at, (topic, partition), start_offset)
        if aborted is None:
            raise no_transaction_at(topic, partition, start_offset)
        producer_id = aborted.producer_id
        where = f"from offset {start_offset} of {where}"
    else:
        assert producer_id is not None
        assert producer_epoch is not None
        assert coordinator_epoch is not None
        cluster.call(transactions.abort, (topic, partition), producer_id, producer_epoch, coordinator_epoch)
        where = f"in {where}"
    if json:
        output.json_document({"topic": topic, "partition": partition, "producer_id": producer_id})
    else:
        print(f"Aborted the transaction of producer {producer_id} {where}.")


@app.command(
    "find-hanging",
    epilog=options.examples(
        "headrace transactions find-hanging",
        "headrace transactions find-hanging --topic orders --max-timeout 1h",
    ),
)
def find_hanging(
    topic: Annotated[str | None, typer.Option("--topic", help="Only in this topic.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Only in this partition.")
    ] = None,
    broker: Annotated[int | None, typer.Option("--broker", help="Only replicas of this broker.")] = None,
    max_timeout: Annotated[
        str,
        typer.Option(
            "--max-timeout",
            metavar="DURATION",
            help="The longest a transaction may take (transaction.max.timeout.ms).",
        ),
    ] = "15m",
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Find open transactions that no coordinator will end: they hold up every reader of committed records."""
    if partition is not None and topic is None:
        raise Misuse("--partition needs the --topic that it is of.")
    longest = round(times.seconds_of(max_timeout) * 1000)
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import transactions

    cluster = connect(bootstrap, command_config)
    if broker is not None and all(node.id != broker for node in cluster.nodes):
        known = ", ".join(str(node.id) for node in cluster.nodes)
        raise Failure(f"There is no broker {broker}; the live ones are {known}.")
    found = cluster.call(
        transactions.find_hanging, topic=topic, partition=partition, broker_id=broker, longer_than_ms=longest
    )
    _show_producers(found, json, "No transaction hangs.")


def _show_producers(found: list[Producer], json: bool, none: str) -> None:
    if json:
        output.json_document([_told(each) for each in found])
    elif found:
        header = (
            "TOPIC", "PARTITION", "PRODUCER ID", "EPOCH", "COORDINATOR EPOCH", "START OFFSET", "LAST SEQUENCE", "LAST WRITE",
        )  # fmt: skip
        rows = [
            (
                each.topic,
                each.partition,
                each.producer_id,
                each.producer_epoch,
                each.coordinator_epoch,
                each.start_offset,
                each.last_sequence,
                _time(each.last_timestamp),
            )
            for each in found
        ]
        output.table(header, rows)
    else:
        output.note(none)


def _told(producer: Producer) -> dict[str, Any]:
    return {
        "topic": producer.topic,
        "partition": producer.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.start_offset,
        "last_sequence": producer.last_sequence,
        "last_timestamp": producer.last_timestamp,
    }


def _described(each: Description) -> dict[str, Any]:
    return {
        "transactional_id": each.transactional_id,
        "coordinator": each.coordinator,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "state": each.state,
        "timeout_ms": each.timeout_ms,
        "started_ms": each.started_ms,
        "partitions": [{"topic": topic, "partition": index} for topic, index in each.partitions],
    }


def _time(timestamp_ms: int) -> str | None:
    if timestamp_ms < 0:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
