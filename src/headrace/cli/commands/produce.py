"""`headrace produce`: lines from a terminal, pipe or file become records of a topic."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse, did_you_mean
from headrace.cli.parsing import properties
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

_ACKS = ("0", "1", "all", "-1")
_FEW = 6  # partitions that are named one by one
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

app = options.command_app("Write records to a topic.")


@app.command(
    epilog=options.examples(
        "echo hello | headrace produce greetings",
        "headrace produce orders --key-separator : --file orders.txt",
        "headrace consume orders --until-end --json | headrace produce copy --from-json",
    )
)
def produce(
    topic: options.Topic,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read from a file, not from stdin.")
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-k", metavar="TEXT", help="What is before it is the key."),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="The key of every record.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="NAME=VALUE", help="A header of every record; may be repeated."
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Default: by key, as the Java client does.")
    ] = None,
    null_marker: Annotated[
        str | None, typer.Option("--null-marker", metavar="TEXT", help="A key or value equal to it is null.")
    ] = None,
    from_json: Annotated[
        bool,
        typer.Option("--from-json", help="Each line is a JSON object, as 'headrace consume --json' prints."),
    ] = False,
    registry: options.RegistryUrl = None,
    login: options.RegistryLogin = None,
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="NAME", help="With --registry: whose newest schema. [TOPIC-value]"),
    ] = None,
    acks: Annotated[str, typer.Option("--acks", help="0, 1 or all.")] = "all",
    compression: Annotated[
        str, typer.Option("--compression", help="none, gzip, snappy, lz4 or zstd.")
    ] = "none",
    setting: Annotated[
        list[str] | None,
        typer.Option("--property", "-P", metavar="KEY=VALUE", help="A producer setting; may be repeated."),
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Write records to a topic, one a line."""
    if from_json and (key_separator is not None or null_marker is not None):
        raise Misuse("--from-json lines hold their keys and nulls themselves; leave the other options out.")
    if key is not None and key_separator is not None:
        raise Misuse("Give --key or --key-separator, not both.")
    options.choose("--acks", acks, _ACKS)
    options.choose("--compression", compression, _CODECS)
    extra = properties.from_arguments(setting or [], "--property")
    headers = [(k, v.encode()) for k, v in properties.from_arguments(header or [], "--header").items()]

    from headrace.cli.cluster.connection import connect
    from headrace.cli.cluster.sink import Sink
    from headrace.cli.view.progress import Progress
    from headrace.cli.view.records.json_format import from_json as read_json
    from headrace.cli.view.records.line_format import LineFormat
    from headrace.cli.view.records.lines import read_lines

    if subject is not None and registry is None:
        raise Misuse("--subject names a schema of a registry; give --registry, too.")
    registered = None
    if registry is not None:
        from headrace.cli.view.records.registered import Registered

        registered = Registered(registry, login)
    source, size = _open(file)
    lines = LineFormat(
        parse_key=key_separator is not None,
        key_separator=(key_separator or "\t").encode(),
        null_marker=null_marker.encode() if null_marker is not None else None,
    )
    cluster = connect(bootstrap, command_config, extra)
    sink = Sink(cluster, topic, {"acks": acks, "compression.type": compression})
    if sink.created:
        output.note(
            f"There was no topic {topic}; it has been created with the broker's defaults "
            f"('headrace topics describe {topic}' shows them).{_hint(cluster, topic)}"
        )
    if source == 0 and sys.stdin.isatty():
        output.note("Type records, one a line; Ctrl-D ends.")
    with Progress(f"Writing to {topic}", size, "bytes", shown=file is not None) as progress, sink:
        for number, line in enumerate(read_lines(source, sink.poll), 1):
            record = read_json(line, number) if from_json else lines.parse(line, number)
            record.key = key.encode() if key is not None else record.key
            if registered is not None:
                record.value = registered.encoded(subject or f"{topic}-value", record.value, number)
            record.headers = [*headers, *record.headers]
            record.partition = (
                partition if partition is not None else record.partition if not from_json else None
            )
            sink.send(record)
            progress.advance(len(line) + 1)
    if json:
        by_partition = {str(number): count for number, count in sorted(sink.by_partition.items())}
        output.json_document({"topic": topic, "records": sink.sent, "partitions": by_partition})
    elif file is not None or sys.stderr.isatty():
        output.note(f"Wrote {output.count(sink.sent, 'record')} to {topic}{_where(sink.by_partition)}.")


def _where(by_partition: Mapping[int, int]) -> str:
    """In how many partitions the records are, and which where they are few."""
    if not by_partition:
        return ""
    if len(by_partition) > _FEW:
        return f", in {len(by_partition)} partitions, {min(by_partition.values())} to {max(by_partition.values())} in each"
    first, *others = sorted(by_partition.items())
    if not others:
        return f", in partition {first[0]}"
    return f": {first[1]} in partition {first[0]}" + "".join(
        f", {count} in {number}" for number, count in others
    )


def _hint(cluster: Cluster, created: str) -> str:
    """A name that is near another one may be a slip."""
    from headrace.client.administration.topics import users_own

    hint = did_you_mean(created, (name for name in cluster.call(users_own) if name != created))
    return hint and f"{hint} Then 'headrace topics delete {created}' takes the new one away."


def _open(file: Path | None) -> tuple[int, int | None]:
    """A descriptor to read from, and how much there is when that is known."""
    if file is None:
        return sys.stdin.fileno(), None
    try:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return os.open(file, os.O_RDONLY), file.stat().st_size
    except OSError as error:
        raise Failure(f"Cannot read {file}: {error.strerror}.") from None
