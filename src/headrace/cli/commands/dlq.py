"""`headrace dlq`: list, show, replay and drop dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.dead_letter_box import DeadLetter, DeadLetterBox

app = options.command_app("List, show, replay and drop dead letters.")

Places = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PARTITION:OFFSET[-LAST]]…", help="Which letters, as `list` shows them."),
]
EveryOne = Annotated[bool, typer.Option("--all", help="Every letter that is not settled.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Only letters whose reason contains this text.")]
From = Annotated[str | None, typer.Option("--from", metavar="TOPIC", help="Only letters from this topic.")]


@app.command(
    "list",
    epilog=options.examples(
        "headrace dlq list",
        "headrace dlq list orders.dlq",
        "headrace dlq list orders --reason ValueError --json",
    ),
)
def list_(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]", help="orders.dlq, or orders.", autocompletion=options.complete_topic
        ),
    ] = None,
    settled: Annotated[
        bool, typer.Option("--settled", help="Also those that were replayed or dropped.")
    ] = False,
    reason: Reason = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most so many.")] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """List the dead letters of a topic, or, without one, all dead-letter topics."""
    if topic is None:
        _list_topics(bootstrap, command_config, json)
        return
    with _box(topic, bootstrap, command_config) as box:
        wanted = _chosen(None, reason, None)
        found = []
        for letter in box.letters(settled=settled):
            if wanted(letter):
                found.append(letter)
            if len(found) == limit:
                break
    if json:
        output.json_document([_as_json(letter) for letter in found])
    elif found:
        output.table(
            ("PLACE", "TIME", "FROM", "ATTEMPTS", "SETTLED", "REASON"),
            [
                (
                    f"{each.partition}:{each.offset}",
                    _time(each.timestamp),
                    f"{each.origin} {each.origin_partition}:{each.origin_offset}",
                    each.attempt,
                    "yes" if each.settled else "no",
                    _shortened(each.reason),
                )
                for each in found
            ],
        )
    else:
        output.note(f"There are no such dead letters in {box.topic}.")


@app.command(epilog=options.examples("headrace dlq show orders.dlq 0:17"))
def show(
    topic: options.Topic,
    place: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET")],
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show one dead letter with its headers, key and value."""
    with _box(topic, bootstrap, command_config) as box:
        wanted = _chosen([place], None, None)
        letter = next((each for each in box.letters(settled=True) if wanted(each)), None)
    if letter is None:
        raise Failure(
            f"There is no dead letter at {place} in {box.topic}; see headrace dlq list {box.topic}."
        )
    if json:
        output.json_document(_as_json(letter))
        return
    print(f"Reason:   {letter.reason}")
    print(f"From:     {letter.origin}, partition {letter.origin_partition}, offset {letter.origin_offset}")
    print(f"Attempts: {letter.attempt}")
    print(f"Time:     {_time(letter.timestamp)}")
    print(f"Settled:  {'yes' if letter.settled else 'no'}")
    for name, value in letter.headers:
        if not name.startswith("headrace.dlq."):
            print(f"Header:   {name} = {_text(value)}")
    print(f"Key:      {_text(letter.key)}")
    print(f"Value:    {_text(letter.value)}")


@app.command(
    epilog=options.examples(
        "headrace dlq replay orders.dlq 0:17 0:20-25",
        "headrace dlq replay orders --all --reason ConnectionError",
        "headrace dlq replay orders.dlq --all --to orders.repaired",
    )
)
def replay(
    topic: options.Topic,
    places: Places = None,
    all_: EveryOne = False,
    reason: Reason = None,
    from_: From = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TOPIC", help="Default: where it came from.")
    ] = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Send dead letters back to the topic they came from; they are settled then."""
    _settle("replayed", topic, places, all_, reason, from_, json, bootstrap, command_config, to)


@app.command(
    epilog=options.examples(
        "headrace dlq drop orders.dlq 0:17", "headrace dlq drop orders --all --reason DeserializationError"
    )
)
def drop(
    topic: options.Topic,
    places: Places = None,
    all_: EveryOne = False,
    reason: Reason = None,
    from_: From = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Settle dead letters without sending them, and delete what is settled at the beginning."""
    _settle("dropped", topic, places, all_, reason, from_, json, bootstrap, command_config)


def _settle(
    what: str,
    topic: str,
    places: list[str] | None,
    all_: bool,
    reason: str | None,
    from_: str | None,
    json: bool,
    bootstrap: str,
    command_config: Path | None,
    to: str | None = None,
) -> None:
    if bool(places) == all_:
        raise Misuse("Say which letters: either places such as 0:17, or --all.")
    with _box(topic, bootstrap, command_config) as box:
        wanted = _chosen(places, reason, from_)
        count = box.replay(wanted, to=to) if what == "replayed" else box.drop(wanted)
    if json:
        output.json_document({"topic": box.topic, what: count})
    elif count:
        print(f"{what.capitalize()} {count} dead letter{'' if count == 1 else 's'} of {box.topic}.")
    else:
        raise Failure(
            f"No unsettled dead letter of {box.topic} was chosen; see headrace dlq list {box.topic}."
        )


def _list_topics(bootstrap: str, command_config: Path | None, json: bool) -> None:
    from headrace.cli.cluster.connection import connect
    from headrace.client import Admin
    from headrace.client.dead_letter_box import DeadLetterBox
    from headrace.client.dead_letters import is_for_letters

    settings = connect(bootstrap, command_config).settings
    rows: list[tuple[str, int]] = []
    with _sentences(), Admin(settings) as admin:
        for name in admin.topics():
            if is_for_letters(name):
                with DeadLetterBox(name, settings) as box:
                    rows.append((name, box.count()))
    if json:
        output.json_document([{"topic": name, "unsettled": count} for name, count in rows])
    elif rows:
        output.table(("TOPIC", "UNSETTLED"), rows)
    else:
        output.note("There are no dead-letter topics.")


@contextmanager
def _box(topic: str, bootstrap: str, command_config: Path | None) -> Iterator[DeadLetterBox]:
    from headrace.cli.cluster.connection import connect
    from headrace.client import Admin
    from headrace.client.dead_letter_box import DeadLetterBox
    from headrace.client.dead_letters import SUFFIX, is_for_letters

    settings = connect(bootstrap, command_config).settings
    with _sentences():
        with Admin(settings) as admin:
            known = admin.topics()
        name = topic if topic.endswith(SUFFIX) or topic + SUFFIX not in known else topic + SUFFIX
        if name not in known:
            boxes = [each for each in known if is_for_letters(each)]
            hint = f"there are {', '.join(boxes)}" if boxes else "and there are no dead-letter topics at all"
            raise Failure(f"There is no topic {name}; {hint}.")
        with DeadLetterBox(name, settings) as box:
            yield box


@contextmanager
def _sentences() -> Iterator[None]:
    from headrace.client import ClientError

    try:
        yield
    except ClientError as error:
        raise Failure(f"{error}.") from None


def _chosen(places: list[str] | None, reason: str | None, from_: str | None) -> Callable[[DeadLetter], bool]:
    from headrace.client import ConfigError
    from headrace.client.dead_letter_box import parse_places

    try:
        there = parse_places(places) if places else lambda letter: True
    except ConfigError as error:
        raise Misuse(f"{error}.") from None
    return lambda letter: (
        there(letter)
        and (reason is None or reason in letter.reason)
        and (from_ is None or from_ == letter.origin)
    )


def _as_json(letter: DeadLetter) -> dict[str, Any]:
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp,
        "reason": letter.reason,
        "attempt": letter.attempt,
        "from": {
            "topic": letter.origin,
            "partition": letter.origin_partition,
            "offset": letter.origin_offset,
        },
        "settled": letter.settled,
        "headers": [[name, _text(value)] for name, value in letter.headers],
        "key": _text(letter.key),
        "value": _text(letter.value),
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


def _time(millis: int) -> str:
    return (
        datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="seconds")
        if millis >= 0
        else output.MISSING
    )


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
