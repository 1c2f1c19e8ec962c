"""What the commands share on the command line: option types, the look of the help, and completion hooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.failure import Misuse
from headrace.link import DEFAULT_BOOTSTRAP as DEFAULT_BOOTSTRAP


def complete_topic(ctx: typer.Context, incomplete: str) -> list[str]:
    from headrace.cli.completion import topics

    return topics(ctx.params, incomplete)


def complete_group(ctx: typer.Context, incomplete: str) -> list[str]:
    from headrace.cli.completion import groups

    return groups(ctx.params, incomplete)


def complete_context(incomplete: str) -> list[str]:
    from headrace.cli.completion import contexts

    return contexts(incomplete)


def check_bootstrap(servers: str) -> str:
    return check_servers("--bootstrap-server", servers)


def check_servers(option: str, servers: str) -> str:
    """HOST:PORT by commas, as it is; Misuse when it is something else."""
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        host = host.rpartition("://")[2]
        plain = host.startswith("[") and host.endswith("]") if ":" in host else bool(host)
        if not (colon and plain and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise Misuse(f"{option} takes HOST:PORT, such as {DEFAULT_BOOTSTRAP}, not '{server.strip()}'.")
    return servers


def choose_bootstrap(ctx: typer.Context, param: typer.CallbackParam, servers: str | None) -> str | None:
    """The servers on the command line; else those of a context or the environment; else the default."""
    chosen = choose_explicitly(ctx, param, servers)
    if chosen is not None:
        return chosen
    from headrace.cli.parsing.which_cluster import in_use

    used = in_use()
    return servers if used is None else check_bootstrap(used)


def choose_explicitly(ctx: typer.Context, param: typer.CallbackParam, servers: str | None) -> str | None:
    """The same without the context in use and the default: None when no cluster was chosen for this command."""
    source = ctx.get_parameter_source(param.name or "")
    if servers is not None and source is not None and source.name == "COMMANDLINE":
        return check_bootstrap(servers)
    from headrace.cli.parsing.which_cluster import from_environment

    chosen = from_environment()
    return None if chosen is None else check_bootstrap(chosen)


def _choose_context(name: str | None) -> None:
    if name:
        os.environ["HEADRACE_CONTEXT"] = name


Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        envvar="HEADRACE_BOOTSTRAP",
        help="Any brokers of the cluster.",
        callback=choose_bootstrap,
    ),
]
ContextName = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        envvar="HEADRACE_CONTEXT",
        help="A cluster named with 'headrace context add'.",
        callback=_choose_context,
        is_eager=True,  # the servers depend on it
        expose_value=False,
        autocompletion=complete_context,
    ),
]
"""Added by the tree of commands to all that take --bootstrap-server; chosen for this process by its environment."""
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Client properties (security and so on), by the Java client's names or librdkafka's.",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option("--metrics", metavar="HOST:PORT", help="Serve the numbers of `status` to Prometheus there."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topic)]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC…", autocompletion=complete_topic)]
Group = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=complete_group)]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP…", autocompletion=complete_group)]


RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        "-r",
        metavar="URL",
        help="A schema registry, such as http://127.0.0.1:8081: keys and values that it knows are JSON here.",
    ),
]
RegistryLogin = Annotated[
    str | None,
    typer.Option(
        "--login",
        metavar="USER:PASSWORD",
        envvar="HEADRACE_REGISTRY_LOGIN",
        help="For the registry, or a token alone.",
    ),
]


def choose(option: str, given: str, known: Sequence[str]) -> None:
    """Misuse when it is none of them."""
    if given not in known:
        raise Misuse(f"{option} takes {', '.join(known[:-1])} or {known[-1]}, not '{given}'.")


def command_app(help: str, *, completion: bool = False, **settings: Any) -> typer.Typer:
    """A Typer in the house style: plain help (rich would double the time it takes), no rich tracebacks."""
    return typer.Typer(
        help=help,
        add_completion=completion,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def examples(*lines: str) -> str:
    """An epilog that typer prints as it stands."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
