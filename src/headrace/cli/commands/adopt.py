"""`headrace topics adopt`: take over topics from the folders another broker left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Failure
from headrace.cli.parsing import properties
from headrace.cli.view import output


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=options.examples(
            "headrace topics adopt /var/lib/kafka/orders-0 /var/lib/kafka/orders-1",
            "headrace topics adopt /var/lib/kafka --data ./data --config retention.ms=-1",
        )
    )(adopt)


def adopt(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER…", help="Partition folders, or directories that hold some."),
    ],
    data: Annotated[Path, typer.Option(metavar="DIR", help="The data directory that takes them.")] = Path(
        "data"
    ),
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "-c", metavar="KEY=VALUE", help="A setting for the topics; may be repeated."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Copy topics that Apache Kafka wrote into a data directory, to be served from there.

    The broker of that directory must be stopped, and so should be the one that wrote the folders. Records, offsets,
    timestamps and topic ids stay as they are; the originals are not touched.
    """
    import asyncio

    from headrace.cli.view.progress import Progress
    from headrace.server import adopt as work
    from headrace.server.config.broker import BrokerConfig
    from headrace.server.config.definition import ConfigError

    settings = properties.from_arguments(config or [], "--config")
    try:
        broker = BrokerConfig.load({}, {"log.dirs": str(data), "listeners": "PLAINTEXT://127.0.0.1:0"})
        broker.topic_config(settings)
    except ConfigError as error:
        raise Failure(str(error), Exit.USAGE) from None
    try:
        topics = work.find_topics(folders)
        total = sum(
            file.stat().st_size
            for partitions in topics.values()
            for folder in partitions.values()
            for file in folder.iterdir()
        )
        with Progress("Copying", total, "bytes") as progress:
            adopted = asyncio.run(work.adopt(broker, topics, settings, progress.advance))
    except work.AdoptError as error:
        raise Failure(str(error)) from None
    if json:
        output.json_document(
            [{"topic": one.topic, "partitions": one.partitions, "bytes": one.bytes} for one in adopted]
        )
        return
    for one in adopted:
        print(f"Adopted topic {one.topic}: {one.partitions} partitions, {one.bytes} bytes.")
