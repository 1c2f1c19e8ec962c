"""`headrace consume`: records of topics on stdout."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import properties, times
from headrace.cli.view import output

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from headrace.cli.cluster.connection import Cluster

app = options.command_app("Read records from topics.")

_PATTERN = "^"
_ISOLATION = ("read_uncommitted", "read_committed")
_FIELDS = ("topic", "timestamp", "partition", "offset", "epoch", "headers", "key", "value")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records to read, and when to stop."""

    topics: list[str]
    """Names, and patterns that begin with ^."""
    group: str | None
    position: str | int
    """earliest, latest, an offset, or how many before the end (negative)."""
    timestamp: int | None
    """Where to start instead, in milliseconds."""
    partitions: frozenset[int]
    """Empty for all."""
    most: int | None
    until_end: bool
    idle_timeout: float | None
    isolation: str


@app.command(
    epilog=options.examples(
        "headrace consume orders --from-beginning",
        "headrace consume orders --group billing",
        "headrace consume orders --since 15m --until-end --fields key,value",
        "headrace consume orders --offset -10 --until-end   # the last ten of each partition",
        "headrace consume orders --from-beginning --until-end --json | jq .value",
        r"headrace consume '^orders-.*' --format '%t %p %o %k %v\n'   # %T is the time, %h the headers",
    )
)
def consume(
    topics: options.Topics,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", help="Join a group and commit; without, read every partition alone."),
    ] = None,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning", help="Start with the oldest record (for a group: if it has no offset)."
        ),
    ] = False,
    offset: Annotated[
        str | None, typer.Option("--offset", help="earliest, latest, a number, or -N: N before the end.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Start at a time (2024-05-31T12:00) or some time ago (15m)."
        ),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, help="Only this partition; may be repeated.")
    ] = None,
    max_records: Annotated[
        int | None, typer.Option("--max", "-n", min=1, help="Stop after so many records.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", "-e", help="Stop when all that is there has been read.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Stop after so long without a record."),
    ] = None,
    fields: Annotated[
        str,
        typer.Option("--fields", metavar="NAMES", help=f"Any of {','.join(_FIELDS)}; printed in that order."),
    ] = "value",
    separator: Annotated[
        str, typer.Option("--separator", help="Between fields; a tab by default.", show_default=False)
    ] = "\t",
    template: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="TEMPLATE",
            help="Instead of fields, as kcat and rpk have it: %t topic, %p partition, %o offset, %k key, %v value, %h headers, "
            "%T time in ms, %K and %V sizes, %%, \\n, \\t.",
        ),
    ] = None,
    isolation: Annotated[
        str, typer.Option("--isolation-level", help="read_uncommitted or read_committed.")
    ] = "read_uncommitted",
    setting: Annotated[
        list[str] | None,
        typer.Option("--property", "-P", metavar="KEY=VALUE", help="A consumer setting; may be repeated."),
    ] = None,
    registry: options.RegistryUrl = None,
    login: options.RegistryLogin = None,
    json: Annotated[bool, typer.Option("--json", help="Print each record as a line of JSON.")] = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Read records and print their values (or other fields), until Ctrl-C unless an option says when to stop.

    A topic that begins with ^ is a regular expression: of the topics there are, and in a group of those to come, too.
    """
    chosen = set(fields.split(","))
    if not chosen <= set(_FIELDS):
        raise Misuse(f"--fields takes any of {','.join(_FIELDS)}, not '{fields}'.")
    if sum((from_beginning, offset is not None, since is not None)) > 1:
        raise Misuse("Give one of --from-beginning, --offset and --since.")
    if group is not None and (offset is not None or since is not None or partition):
        raise Misuse("A group decides itself where to read; use 'headrace groups reset-offsets' to move it.")
    options.choose("--isolation-level", isolation, _ISOLATION)
    show = _printer(json, chosen, separator, template)
    if registry is not None:
        from headrace.cli.view.records.registered import Registered

        known, plain = Registered(registry, login), show
        show = lambda message: plain(known.decoded(message))  # type: ignore[arg-type]  # noqa: E731
    wanted = Wanted(
        topics,
        group,
        _position(offset, from_beginning),
        _start_time(since),
        frozenset(partition or ()),
        max_records,
        until_end,
        timeout,
        isolation,
    )
    extra = properties.from_arguments(setting or [], "--property")

    from headrace.cli.cluster.connection import connect

    _print(connect(bootstrap, command_config, extra), wanted, show)


def _print(cluster: Cluster, wanted: Wanted, show: Callable[[Message], bytes]) -> None:
    from headrace.cli.cluster import feed
    from headrace.cli.cluster.connection import Refused
    from headrace.wire.errors import ErrorCode

    there = _partitions(cluster, wanted)
    at_the_end = wanted.group is None and wanted.position == "latest" and wanted.timestamp is None
    if at_the_end and not wanted.until_end and sys.stdout.isatty():
        output.note("Waiting for new records; --from-beginning shows those that are there. Ctrl-C ends.")
    consumer = cluster.consumer(
        {
            "group.id": wanted.group or "headrace-consume",
            "enable.auto.commit": wanted.group is not None,
            "auto.offset.reset": "earliest" if wanted.position == "earliest" else "latest",
            "enable.partition.eof": wanted.until_end,
            # The end of a partition is known when a fetch comes back empty; do not let the broker hold that back.
            "fetch.wait.max.ms": 20 if wanted.until_end else 500,
            "isolation.level": wanted.isolation,
        }
    )
    try:
        idle = wanted.idle_timeout
        if wanted.group is not None:
            consumer.subscribe(wanted.topics)
            # A member of a group does not know which partitions it will get; it stops after a while without records.
            idle = 5.0 if idle is None and wanted.until_end else idle
        else:
            feed.start(consumer, there, wanted.position, wanted.timestamp)
        ends = set(there) if wanted.until_end and wanted.group is None else None
        out = sys.stdout.buffer
        in_group = wanted.group is not None
        for batch in feed.batches(
            consumer, most=wanted.most, idle_timeout=idle, ends=ends, in_group=in_group
        ):
            if batch:
                out.write(b"".join(map(show, batch)))
                out.flush()
    except Refused as refused:
        if refused.error != ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            raise
        raise Failure(
            f"Group '{wanted.group}' takes no members of this kind: it is a share group, or its members have other assignors; "
            f"'headrace groups describe {wanted.group}' shows what it is."
        ) from None
    finally:
        consumer.close()


def _partitions(cluster: Cluster, wanted: Wanted) -> list[tuple[str, int]]:
    from headrace.client.administration.topics import partitions_of

    topics = _matching(cluster, wanted.topics)
    there = cluster.call(partitions_of, topics)
    known = {number for _, number in there}
    missing = wanted.partitions - known
    if missing:
        raise Failure(f"There is no partition {min(missing)}; '{topics[0]}' has 0 to {max(known)}.")
    return [
        (topic, number) for topic, number in there if not wanted.partitions or number in wanted.partitions
    ]


def _matching(cluster: Cluster, wanted: list[str]) -> list[str]:
    """The topics that are wanted, patterns replaced by what they match."""
    if not any(topic.startswith(_PATTERN) for topic in wanted):
        return wanted
    from headrace.client.administration.topics import users_own

    there = cluster.call(users_own)
    found: dict[str, None] = {}
    for topic in wanted:
        if not topic.startswith(_PATTERN):
            found[topic] = None
            continue
        try:
            expression = re.compile(topic)
        except re.error as error:
            raise Misuse(f"'{topic}' is no regular expression: {error}.") from None
        matches = [name for name in there if expression.search(name)]
        if not matches:
            raise Failure(f"No topic matches '{topic}'; 'headrace topics list' shows the topics there are.")
        found.update(dict.fromkeys(matches))
    return list(found)


def _position(offset: str | None, from_beginning: bool) -> str | int:
    if offset is None:
        return "earliest" if from_beginning else "latest"
    if offset in ("earliest", "latest"):
        return offset
    try:
        return int(offset)
    except ValueError:
        raise Misuse(f"--offset takes earliest, latest, a number or -N, not '{offset}'.") from None


def _start_time(since: str | None) -> int | None:
    if since is None:
        return None
    if since[:4].isdigit() and "-" in since:
        return times.milliseconds_of(since)
    return max(0, round((time.time() - times.seconds_of(since)) * 1000))


def _printer(
    json: bool, chosen: set[str], separator: str, template: str | None
) -> Callable[[Message], bytes]:
    if template is not None:
        if json or chosen != {"value"}:
            raise Misuse("Give one of --format, --fields and --json.")
        from headrace.cli.view.records.template import compiled

        return compiled(template)
    if json:
        from headrace.cli.view.records.json_format import to_json

        return lambda message: to_json(message).encode() + b"\n"
    from headrace.cli.view.records.text_format import TextFormat

    switches = {name: name in chosen for name in _FIELDS}
    text = TextFormat(**switches, key_separator=separator.encode(), readable_times=True)  # type: ignore[arg-type]
    return text.line
