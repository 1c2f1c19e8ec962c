"""The tree of commands. A command's module is imported only when the command line names it, so that
`headrace --help` costs no more than typer itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from headrace.cli import plain_help
from headrace.cli.failure import Exit
from headrace.cli.options import ContextName, command_app


class Entry(NamedTuple):
    module: str | None  # holds `app`, a Typer with one command or several; None: dispatched before the tree
    summary: str


COMMANDS = {
    "init": Entry(
        "headrace.cli.commands.init", "Make a cluster with logins and TLS, and its first administrator."
    ),
    "up": Entry("headrace.cli.commands.up", "Start a broker."),
    "demo": Entry("headrace.cli.commands.demo", "See it at work: a broker, a live load and a pipeline."),
    "topics": Entry("headrace.cli.commands.topics", "Create, list, describe, alter and delete topics."),
    "produce": Entry("headrace.cli.commands.produce", "Write records to a topic."),
    "consume": Entry("headrace.cli.commands.consume", "Read records from topics."),
    "groups": Entry("headrace.cli.commands.groups", "List, describe, reset and delete consumer groups."),
    "lag": Entry("headrace.cli.commands.lag", "Watch, check and record how far groups are behind."),
    "clients": Entry(
        "headrace.cli.commands.clients", "Who is connected to the cluster, and the metrics clients push."
    ),
    "top": Entry("headrace.cli.commands.top", "Watch brokers, topics, groups and clients at work."),
    "alerts": Entry(
        "headrace.cli.commands.alerts", "Watch a cluster by rules and tell people; silence, look back."
    ),
    "degrade": Entry(
        "headrace.cli.commands.degrade",
        "Do less under load: switch rules on and off, replay what was dropped.",
    ),
    "backlog": Entry(
        "headrace.cli.commands.backlog",
        "Help a group that is behind: divert its backlog, see what would help.",
    ),
    "registry": Entry("headrace.cli.commands.registry", "Run a schema registry beside a Kafka cluster."),
    "schemas": Entry(
        "headrace.cli.commands.schemas", "List, show, register, check, diff, move and delete schemas."
    ),
    "transactions": Entry(
        "headrace.cli.commands.transactions", "List, describe and abort transactions; find hanging ones."
    ),
    "users": Entry("headrace.cli.commands.users", "Add, list and remove users who log in with SCRAM."),
    "configs": Entry(
        "headrace.cli.commands.configs",
        "Show and change settings of topics, brokers, groups and client metrics.",
    ),
    "acls": Entry("headrace.cli.commands.acls", "Allow and deny: add, list, remove and explain ACLs."),
    "quotas": Entry("headrace.cli.commands.quotas", "Show, set and remove client quotas."),
    "features": Entry("headrace.cli.commands.features", "Show and set feature levels of the cluster."),
    "context": Entry("headrace.cli.commands.context", "Name clusters and choose among them."),
    "cluster": Entry("headrace.cli.commands.cluster", "Describe the cluster and check its health."),
    "doctor": Entry(
        "headrace.cli.commands.doctor",
        "Find what is wrong and what to do: machine, settings, cluster, groups.",
    ),
    "mirror": Entry(
        "headrace.cli.commands.mirror",
        "Mirror topics of another cluster with the same offsets, and fail over.",
    ),
    "reassign": Entry(
        "headrace.cli.commands.reassign", "Move partitions to other brokers: plan, execute, status, cancel."
    ),
    "elect-leaders": Entry(
        "headrace.cli.commands.elect_leaders", "Give leadership back to preferred leaders."
    ),
    "store": Entry(
        "headrace.cli.commands.store", "Move a cluster's facts between a data directory and ZooKeeper."
    ),
    "dlq": Entry("headrace.cli.commands.dlq", "List, show, replay and drop dead letters."),
    "partitioner": Entry("headrace.cli.commands.partitioner", "See what moves when partitions are added."),
    "perf": Entry(
        "headrace.cli.commands.perf", "Load-test a cluster: produce, consume, end to end, capacity."
    ),
    "connect": Entry("headrace.cli.commands.connect", "Move data into topics and out of them, on Spark."),
    "dump-log": Entry("headrace.cli.commands.dump_log", "Print what is in a partition's files."),
    "pipeline": Entry("headrace.cli.commands.pipeline", "Make, check, run and replay pipelines on Spark."),
    "services": Entry(
        "headrace.cli.commands.services", "List, describe, invoke and export services (Dubbo 2.7)."
    ),
    "kafka": Entry(None, "Kafka's own tools, with their flags and their output."),
}


class Tree(TyperGroup):
    """Shows every command by its summary and loads the one that is named."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in COMMANDS.items():
            self.add_command(TyperCommand(name, help=entry.summary, short_help=entry.summary), name)

    # typer keeps its context class private, so the signature cannot name it.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        module = COMMANDS[args[0]].module if args and args[0] in COMMANDS else None
        if module is not None:
            command = get_command(import_module(module).app)
            _offer_context(command)
            plain_help.apply(command)
            self.add_command(command, args[0])
        return super().resolve_command(ctx, args)


def _offer_context(command: Any) -> None:
    """Add --context to every command that takes --bootstrap-server and HEADRACE_BOOTSTRAP."""
    for inner in getattr(command, "commands", {}).values():
        _offer_context(inner)
    places = [place for place, each in enumerate(command.params) if each.envvar == "HEADRACE_BOOTSTRAP"]
    for place in places:
        command.params.insert(place + 1, get_command(_with_context).params[0])


_with_context = typer.Typer(add_completion=False)


@_with_context.command()
def _only_context(context: ContextName = None) -> None:
    """A command to take the option from."""


app = command_app("A Kafka-compatible message platform.", cls=Tree, completion=True)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
    context: ContextName = None,
) -> None:
    """A Kafka-compatible message platform: one broker or a cluster, and the tools around it."""


def run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        from headrace import __version__
        from headrace.compiled import build

        print(f"headrace {__version__} ({build()})")
        return Exit.OK
    app(args=arguments, prog_name="headrace")
    return Exit.OK
