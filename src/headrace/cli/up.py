"""`headrace up`: start a broker in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import options, properties
from headrace.cli.failure import Exit, Failure, Misuse

app = options.command_app("Start a broker.")

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_DATA = "data"


@app.command(
    epilog=options.examples(
        "headrace up",
        "headrace up --listen 0.0.0.0:9092 --advertise broker-1.example.com:9092 --data /var/lib/headrace",
        "headrace up --config server.properties --set log.retention.hours=24",
        "headrace up --temp --listen 127.0.0.1:0",
        "headrace up --brokers 3",
        "headrace up --zookeeper zk1:2181,zk2:2181/headrace --id 1 --rack a",
    )
)
def up(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help=f"Where to listen; port 0 takes a free one. [{DEFAULT_LISTEN}]"
        ),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="What clients are told to connect to. [what is listened on]"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help=f"Where the data lives. [./{DEFAULT_DATA}]")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A server.properties file.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A broker setting; wins over the file; may be repeated."
        ),
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Run N brokers, one process each, on ports from the given one upwards."
        ),
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT[,…][/CHROOT]", help="Join the cluster whose facts are in ZooKeeper."),
    ] = None,
    broker_id: Annotated[
        int | None, typer.Option("--id", metavar="N", min=0, help="This broker's number in its cluster.")
    ] = None,
    rack: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where it stands; replicas are spread over racks.")
    ] = None,
    temp: Annotated[
        bool, typer.Option("--temp", help="Keep everything in a directory that goes when the broker stops.")
    ] = False,
) -> None:
    """Start a broker in the foreground; Ctrl-C or SIGTERM stops it cleanly."""
    if temp and data is not None:
        raise Misuse("--temp and --data contradict each other; leave one out.")
    overrides = properties.from_arguments(settings or [], "--set")
    flags: dict[str, str] = {}
    if listen is not None:
        flags["listeners"] = f"PLAINTEXT://{_address(listen, '--listen')}"
    if advertise is not None:
        flags["advertised.listeners"] = f"PLAINTEXT://{_address(advertise, '--advertise')}"
    if data is not None:
        flags["log.dirs"] = str(data)
    if zookeeper is not None:
        flags["zookeeper.connect"] = zookeeper
    if broker_id is not None:
        flags["node.id"] = str(broker_id)
    if rack is not None:
        flags["broker.rack"] = rack
    if brokers is not None and (zookeeper is not None or broker_id is not None):
        raise Misuse(
            "--brokers keeps its cluster on this machine and numbers it itself: no --zookeeper, no --id."
        )
    if temp:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
            _run(config, {**flags, "log.dirs": directory, **overrides}, brokers)
    else:
        _run(config, {**flags, **overrides}, brokers)


def _address(text: str, option: str) -> str:
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit():
        raise Misuse(f"{option} takes HOST:PORT, such as 127.0.0.1:9092, not '{text}'.")
    return text if not host.count(":") or host.startswith("[") else f"[{host}]:{port}"


def _run(file: Path | None, overrides: dict[str, str], brokers: int | None) -> None:
    from headrace.config.broker import BrokerConfig
    from headrace.config.definition import ConfigError

    given, places = properties.load_with_places(file) if file is not None else ({}, {})
    if "listeners" not in given:
        overrides = {"listeners": f"PLAINTEXT://{DEFAULT_LISTEN}", **overrides}
    if not {"log.dirs", "log.dir"} & given.keys():
        overrides = {"log.dirs": DEFAULT_DATA, **overrides}
    try:
        checked = BrokerConfig.load(given, overrides, places)
    except ConfigError as error:
        raise Failure(str(error), Exit.USAGE) from None
    if brokers is not None:
        from headrace.broker.supervisor import BrokerCommand, supervise

        code = supervise(BrokerCommand(file, overrides), checked, brokers)
    else:
        from headrace.broker.run import run

        code = run(checked)
    if code:
        raise typer.Exit(code)
