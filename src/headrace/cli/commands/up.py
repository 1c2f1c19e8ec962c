"""`headrace up`: its options and their help. What it does is in `start`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.commands.start import DEFAULT_DATA, DEFAULT_LISTEN, DEFAULT_METRICS, DEFAULT_REGISTRY, start

app = options.command_app("Start a broker.")


@app.command(
    epilog=options.examples(
        "headrace up",
        "headrace up --listen 0.0.0.0:9092 --advertise broker-1.example.com:9092 --data /var/lib/headrace",
        "headrace up --config server.properties --set log.retention.hours=24",
        "headrace up --temp --listen 127.0.0.1:0",
        "headrace up --brokers 3 --metrics --registry",
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
        typer.Option(metavar="HOST:PORT", help="The address that clients connect to. [what is listened on]"),
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
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:PORT]",
            help="Serve /metrics, /livez and /readyz; with --brokers on ports from the given one upwards. "
            f"[{DEFAULT_METRICS}]",
        ),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:PORT]", help=f"Run a schema registry beside the brokers. [{DEFAULT_REGISTRY}]"
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
    code = start(
        {
            "listen": listen,
            "advertise": advertise,
            "data": data,
            "config": config,
            "settings": settings,
            "brokers": brokers,
            "metrics": metrics,
            "registry": registry,
            "zookeeper": zookeeper,
            "broker_id": broker_id,
            "rack": rack,
            "temp": temp,
        }
    )
    if code:
        raise typer.Exit(code)
