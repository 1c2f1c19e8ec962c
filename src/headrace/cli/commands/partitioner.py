"""`headrace partitioner`: what adding partitions would do to keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.view import output

if TYPE_CHECKING:
    from collections.abc import Iterator

app = options.command_app("See where keys go, and what moves when partitions are added.")

_SAMPLE = 100_000
_MOST = 100_000


@app.callback()
def partitioner() -> None:
    """See where keys go, and what moves when partitions are added."""


@app.command(
    epilog=options.examples(
        "headrace partitioner simulate --partitions 6 --to 8",
        "headrace partitioner simulate --topic orders --to 24",
        "headrace partitioner simulate --partitions 6 --to 8 --keys-file customers.txt",
    )
)
def simulate(
    to: Annotated[
        int, typer.Option("--to", min=1, max=_MOST, help="The number of partitions after the change.")
    ],
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, max=_MOST, help="Before; default: the topic's.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", "-t", help="Use the keys in this topic.", autocompletion=options.complete_topic
        ),
    ] = None,
    keys_file: Annotated[
        Path | None, typer.Option("--keys-file", metavar="FILE", help="Use these keys, one a line.")
    ] = None,
    keys: Annotated[
        int, typer.Option("--keys", min=1, help="How many keys to make up, or to read at most.")
    ] = _SAMPLE,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show how many keys would move to another partition, for each partitioner that goes by key."""
    if topic is not None and keys_file is not None:
        raise Misuse("Give either --topic or --keys-file.")
    if topic is None and partitions is None:
        raise Misuse("Give --partitions, the number there is now, or --topic.")

    from headrace.client.partitioners import KEYED, named
    from headrace.client.partitioners import simulate as run

    if topic is not None:
        before, sample = _of_topic(topic, keys, bootstrap, command_config)
        partitions = partitions or before
    elif keys_file is not None:
        sample = _of_file(keys_file, keys)
    else:
        sample = {b"key-%d" % number for number in range(keys)}
    if not sample:
        raise Failure("There are no keys to place; give --partitions alone to try it with made-up ones.")
    assert partitions is not None
    results = {name: run(named(name), sample, partitions, to) for name in KEYED}
    if json:
        output.json_document(
            [
                {
                    "partitioner": name,
                    "keys": each.keys,
                    "partitions": each.before,
                    "to": each.after,
                    "moved": each.moved,
                    "moved_share": each.moved_share,
                    "fewest_share": each.fewest_share,
                    "imbalance": each.imbalance_after,
                }
                for name, each in results.items()
            ]
        )
        return
    print(f"{len(sample)} keys, from {partitions} to {to} partitions:")
    rows = [
        (name, each.moved, f"{each.moved_share:.1%}", f"{each.imbalance_after:.2f}")
        for name, each in results.items()
    ]
    output.table(("PARTITIONER", "KEYS MOVED", "SHARE", "FULLEST / AVERAGE"), rows)
    fewest = next(iter(results.values())).fewest_share
    output.note(
        f"At least {fewest:.1%} must move to share the load evenly; a key that moves loses its order with older records."
    )


def _of_file(path: Path, limit: int) -> set[bytes]:
    try:
        with path.open("rb") as file:
            lines = (line.rstrip(b"\r\n") for line in file)
            return _first(limit, (line for line in lines if line))
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.") from None


def _of_topic(topic: str, limit: int, bootstrap: str, command_config: Path | None) -> tuple[int, set[bytes]]:
    from headrace.cli.cluster.connection import connect
    from headrace.client import ClientError, TopicPartition
    from headrace.client.administration.topics import partitions_of
    from headrace.client.scan import scan

    cluster = connect(bootstrap, command_config)
    there = [TopicPartition(topic, each.partition) for each in cluster.call(partitions_of, [topic])]
    settings = cluster.settings
    try:
        records = scan(settings, dict.fromkeys(there))
        return len(there), _first(limit, (each.raw_key for each in records if each.raw_key is not None))
    except ClientError as error:
        raise Failure(f"{error}.") from None


def _first(limit: int, lines: Iterator[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for line in lines:
        if len(found) >= limit:
            break
        found.add(line)
    return found
