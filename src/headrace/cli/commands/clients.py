"""`headrace clients`: who is connected to the cluster, and the metrics that clients push."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, did_you_mean
from headrace.cli.parsing import times
from headrace.cli.view import output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.client.connected_clients import ConnectedClient

app = options.command_app("Who is connected, and the metrics that clients push.")

Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT,…",
        help="Where the brokers serve /clients; default: what their settings say (headrace.metrics.listener).",
    ),
]
_HEADER = ("CLIENT ID", "PRINCIPAL", "ADDRESS", "SOFTWARE", "BROKERS", "CONNECTIONS", "CONNECTED", "REQUESTS", "IN", "OUT", "TELEMETRY")  # fmt: skip
_RIGHT = ("CONNECTED", "REQUESTS", "IN", "OUT")


@app.command(
    "list",
    epilog=options.examples(
        "headrace clients list",
        "headrace clients list --json",
        "headrace clients list --metrics broker1:9464,broker2:9464",
    ),
)
def list_(
    metrics: Metrics = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """List the clients that are connected to any broker. Requests and bytes are those of the open connections."""
    found = _clients(bootstrap, command_config, metrics)
    if json:
        output.json_document([client.as_json() for client in found])
        return
    rows = [
        (
            each.client_id or None,
            each.principal or None,
            each.address,
            each.software or None,
            output.ids(each.brokers),
            len(each.connections),
            _age(each.since_ms),
            f"{each.total('requests'):,}",
            output.size(each.total("bytes_in")),
            output.size(each.total("bytes_out")),
            ",".join(each.instances_at_work) or None,
        )
        for each in found
    ]
    print("\n".join(output.columns(_HEADER, rows, _RIGHT)))


@app.command(
    epilog=options.examples(
        "headrace clients describe orders-service",
        "headrace clients describe kcz2EFWBQ6KNyzPtDmhSmQ --json",
    )
)
def describe(
    client: Annotated[str, typer.Argument(metavar="ID", help="A client id, or the id of a client instance.")],
    metrics: Metrics = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show a client's connections, and the metrics it pushed last."""
    known = _clients(bootstrap, command_config, metrics, client)
    chosen = [each for each in known if client == each.client_id or client in each.instances]
    if not chosen:
        hint = did_you_mean(client, [each.client_id for each in known])
        remedy = hint or " 'headrace clients list' shows who is connected."
        raise Failure(f"There is no client '{client}'.{remedy}")
    if json:
        output.json_document([each.as_json() for each in chosen])
        return
    for number, each in enumerate(chosen):
        if number:
            print()
        _show(each)


def _clients(
    bootstrap: str, command_config: Any, metrics: str | None, wanted: str | None = None
) -> list[ConnectedClient]:
    from headrace.cli.cluster.clients import connected_clients
    from headrace.cli.cluster.connection import connect

    return connected_clients(connect(bootstrap, command_config), metrics, wanted)


def _show(client: ConnectedClient) -> None:
    facts = (
        ("Client id", client.client_id or output.MISSING),
        ("Principal", client.principal or output.MISSING),
        ("Address", client.address),
        ("Software", client.software or output.MISSING),
    )
    for name, value in facts:
        print(f"{name + ':':<11} {value}")
    if client.connections:
        print()
        print(
            "\n".join(
                output.columns(
                    ("BROKER", "LISTENER", "PORT", "CONNECTED", "IDLE", "REQUESTS", "IN", "OUT"),
                    [
                        (
                            each["broker"],
                            each["listener"],
                            each["port"],
                            _age(each["since_ms"]),
                            times.show_seconds(each["idle_seconds"]),
                            f"{each['requests']:,}",
                            output.size(each["bytes_in"]),
                            output.size(each["bytes_out"]),
                        )
                        for each in client.connections
                    ],
                    ("CONNECTED", "IDLE", "REQUESTS", "IN", "OUT"),
                )
            )
        )
    for each in client.telemetry:
        print()
        _show_telemetry(each)


def _show_telemetry(each: Mapping[str, Any]) -> None:
    asked = ", ".join(each["metrics"]) or "nothing: no subscription matches"
    ended = ", which has ended" if each["terminated"] else ""
    print(f"Client instance {each['client_instance_id']}{ended}, as broker {each['broker']} knows it")
    print(f"Asked for {asked}, every {times.show_seconds(each['interval_ms'] / 1000)}")
    if each["pushed_ms"] is None:
        print("Nothing pushed yet.")
        return
    left = f", {each['left_out']:,} more left out" if each["left_out"] else ""
    print(
        f"Pushes: {each['pushes']:,}, the last one {_age(each['pushed_ms'])} ago with {each['series']:,} series{left}"
    )
    values = each.get("values", [])
    if values:
        rows = [(one["name"], _labels(one["labels"]), _value(one)) for one in values]
        print("\n".join(output.columns(("METRIC", "LABELS", "VALUE"), rows, ("VALUE",))))


def _labels(labels: Mapping[str, str]) -> str | None:
    return ",".join(f"{key}={value}" for key, value in labels.items()) or None


def _value(series: Mapping[str, Any]) -> str:
    if "count" in series:
        total = "not a number" if series["sum"] is None else f"{series['sum']:g}"
        return f"{series['count']:,} values, sum {total}"
    value = series["value"]
    if value is None:
        return "not a number"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{shown} {series['unit']}".rstrip()


def _age(since_ms: int | None) -> str | None:
    return None if since_ms is None else times.show_seconds(max(0.0, time.time() - since_ms / 1000))
