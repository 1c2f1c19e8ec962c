"""`headrace features`: behaviour that the whole cluster switches at once."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, did_you_mean
from headrace.cli.parsing import properties
from headrace.cli.view import output

app = options.command_app("Show and set feature levels of the cluster.")


@app.command(epilog=options.examples("headrace features describe"))
def describe(
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the features, the levels that the brokers support, and the level in force."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import features

    found = connect(bootstrap, command_config).call(features.describe)
    if json:
        output.json_document(
            [
                {"feature": each.name, "lowest": each.lowest, "highest": each.highest, "level": each.level}
                for each in found
            ]
        )
        return
    rows = [(each.name, each.level, each.lowest, each.highest) for each in found]
    output.table(("FEATURE", "LEVEL", "LOWEST", "HIGHEST"), rows)


@app.command(
    "set",
    epilog=options.examples(
        "headrace features set transaction.version=1", "headrace features set transaction.version=2 --dry-run"
    ),
)
def set_(
    levels: Annotated[list[str], typer.Argument(metavar="FEATURE=LEVEL…")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say whether it could be done.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Set levels, up or down: transaction.version 2 gives every transaction its own epoch, 0 and 1 do not."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import features

    wanted = dict(properties.feature_level(text) for text in levels)
    cluster = connect(bootstrap, command_config)
    known = {feature.name: feature.level for feature in cluster.call(features.describe)}
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
            raise Failure(f"There is no feature '{name}'.{hint}")
    up = {name: level for name, level in wanted.items() if level >= known[name]}
    down = {name: level for name, level in wanted.items() if level < known[name]}
    if down:
        cluster.call(features.update, down, features.SAFE_DOWNGRADE, dry_run=dry_run)
    if up:
        cluster.call(features.update, up, features.UPGRADE, dry_run=dry_run)
    if json:
        output.json_document({"dry_run": dry_run, "levels": wanted})
        return
    for name, level in wanted.items():
        print(f"{name} {'can be' if dry_run else 'is'} {level}.")
