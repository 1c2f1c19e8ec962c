"""`headrace configs`: settings of topics, brokers, groups and client metrics."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Misuse
from headrace.cli.parsing import properties
from headrace.cli.view import output

app = options.command_app("Show and change the settings of topics, brokers, groups and client metrics.")


class Kind(StrEnum):
    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"


KindArgument = Annotated[
    Kind, typer.Argument(metavar="topic|broker|group|client-metrics", show_default=False)
]
NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="A topic, a broker's number (none: the default of all), a group, a subscription to client metrics.",
    ),
]


@app.command(
    epilog=options.examples(
        "headrace configs describe topic orders",
        "headrace configs describe topic orders --all",
        "headrace configs describe broker 1 --all --json",
    )
)
def describe(
    kind: KindArgument,
    name: NameArgument = None,
    all_: Annotated[bool, typer.Option("--all", help="Also what is at its default.")] = False,
    documentation: Annotated[bool, typer.Option("--doc", help="Say what each setting is for.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the settings of a topic, a broker, a group or a client metrics subscription, and where each comes from."""
    resource = _resource(kind, name)

    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import configs

    cluster = connect(bootstrap, command_config)
    found = cluster.call(configs.describe, kind, [resource], documentation=documentation)[resource]
    shown = [setting for setting in found if all_ or not setting.is_default]
    if json:
        output.json_document(
            [
                {
                    "name": setting.name,
                    "value": setting.value,
                    "source": setting.source,
                    "sensitive": setting.sensitive,
                    "read_only": setting.read_only,
                    **({"documentation": setting.documentation} if documentation else {}),
                }
                for setting in shown
            ]
        )
    elif not shown:
        output.note("Everything is at its default; --all shows the defaults.")
    elif documentation:
        for setting in shown:
            print(
                f"{setting.name}={_value(setting.value, setting.sensitive)}\n  {setting.documentation or 'No description.'}"
            )
    else:
        rows = [
            (s.name, _value(s.value, s.sensitive), s.source.removesuffix("_CONFIG").lower()) for s in shown
        ]
        output.table(("SETTING", "VALUE", "SOURCE"), rows)


@app.command(
    epilog=options.examples(
        "headrace configs alter topic orders --set retention.ms=86400000",
        "headrace configs alter topic orders --delete retention.ms --set cleanup.policy=compact,delete",
        "headrace configs alter client-metrics producers --set metrics=org.apache.kafka.producer. --set interval.ms=10000",
        "headrace configs alter broker --set log.retention.ms=172800000",
    )
)
def alter(
    kind: KindArgument,
    name: NameArgument = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option("--delete", "-d", metavar="KEY", help="Back to the default; may be repeated."),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Check the change, do not make it.")
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Change settings, or put them back to their defaults."""
    resource = _resource(kind, name)
    changes = properties.from_arguments(set_ or [], "--set")
    if not changes and not delete:
        raise Misuse("Nothing to alter; give --set KEY=VALUE or --delete KEY.")

    from headrace.cli.cluster import settings
    from headrace.cli.cluster.connection import connect

    cluster = connect(bootstrap, command_config)
    settings.alter(cluster, kind, resource, changes, delete or [], validate_only=validate_only)
    if json:
        output.json_document({"kind": str(kind), "name": resource, "set": changes, "deleted": delete or []})
    else:
        what = f"{kind} {resource}" if resource else "all brokers"
        verb = "Would alter" if validate_only else "Altered"
        print(f"{verb} {', '.join([*changes, *(delete or [])])} of {what}.")


def _resource(kind: Kind, name: str | None) -> str:
    if name is None and kind is not Kind.BROKER:
        raise Misuse(f"Name the {kind}: headrace configs … {kind} NAME.")
    return name or ""


def _value(value: str | None, sensitive: bool) -> str | None:
    return "(hidden)" if sensitive else value
