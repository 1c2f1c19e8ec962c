"""`headrace registry`: a schema registry for any Kafka cluster, in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Failure, Misuse
from headrace.cli.parsing import properties

app = options.command_app("Run a schema registry beside a Kafka cluster.")

_LISTENERS, _HOST_NAME, _STORE = "listeners", "host.name", "kafkastore."


@app.command(
    epilog=options.examples(
        "headrace registry",
        "headrace registry --bootstrap-server broker-1:9092 --listen 0.0.0.0:8081 --advertise registry-1",
        "headrace registry --config schema-registry.properties --set schema.compatibility.level=full",
    )
)
def registry(
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one. [127.0.0.1:8081]"),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="The name under which other instances reach this one."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings, as in Confluent's schema-registry.properties."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting; wins over the file; may be repeated."),
    ] = None,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Serve Confluent's schema registry API, with everything kept in the topic _schemas; Ctrl-C or SIGTERM stops it cleanly.

    Several instances on one cluster elect one that writes; the others pass changes on to it."""
    from headrace.cli.cluster.connection import settings_of
    from headrace.link.errors import SettingsError
    from headrace.registry.serving import ServeError, run
    from headrace.registry.settings import SettingError, read
    from headrace.server.log_lines import log_to_stderr
    from headrace.server.stop_signals import StopSignals
    from headrace.server.supervised import end_with_supervisor

    end_with_supervisor()
    given = properties.load(config) if config is not None else {}
    given |= properties.from_arguments(settings or (), "--set")
    servers = f"{_STORE}bootstrap.servers"
    if servers not in given or str(bootstrap) != options.DEFAULT_BOOTSTRAP:
        given[servers] = str(bootstrap)
    for name, value in settings_of(bootstrap, command_config).items():
        given.setdefault(_STORE + name, value)
    if listen is not None:
        given[_LISTENERS] = listen if "://" in listen else f"http://{listen}"
    if advertise is not None:
        given[_HOST_NAME] = advertise
    log_to_stderr()
    try:
        checked = read(given)
    except (SettingError, SettingsError) as error:
        raise Misuse(str(error)) from None
    with StopSignals() as signals:
        try:
            run(checked, signals.event, lambda line: print(line, flush=True))
        except ServeError as error:
            raise Failure(str(error), Exit.FAILED) from None
