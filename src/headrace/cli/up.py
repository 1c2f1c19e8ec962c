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
    if temp:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
            _run(config, {**flags, "log.dirs": directory, **overrides})
    else:
        _run(config, {**flags, **overrides})


def _address(text: str, option: str) -> str:
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit():
        raise Misuse(f"{option} takes HOST:PORT, such as 127.0.0.1:9092, not '{text}'.")
    return text if not host.count(":") or host.startswith("[") else f"[{host}]:{port}"


def _run(file: Path | None, overrides: dict[str, str]) -> None:
    from headrace.broker.run import run
    from headrace.config.broker import BrokerConfig
    from headrace.config.definition import ConfigError

    given = properties.load(file) if file is not None else {}
    if "listeners" not in given:
        overrides = {"listeners": f"PLAINTEXT://{DEFAULT_LISTEN}", **overrides}
    if not {"log.dirs", "log.dir"} & given.keys():
        overrides = {"log.dirs": DEFAULT_DATA, **overrides}
    try:
        checked = BrokerConfig.load(given, overrides)
    except ConfigError as error:
        raise Failure(str(error), Exit.USAGE) from None
    code = run(checked)
    if code:
        raise typer.Exit(code)
