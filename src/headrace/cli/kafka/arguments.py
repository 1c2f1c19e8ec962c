"""Command lines in the manner of Kafka's tools: abbreviated flags, flags of older generations, and its error form.

Flags that were renamed are aliases of the new name. Flags that no longer mean anything are taken and remarked
upon. `--zookeeper` is answered with the way on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from headrace.cli.failure import Failure
from headrace.cli.options import DEFAULT_BOOTSTRAP, check_bootstrap
from headrace.cli.parsing import properties
from headrace.cli.parsing.which_cluster import from_environment, in_use


class KafkaParser(argparse.ArgumentParser):
    """Flags may be abbreviated while they stay unambiguous; a bad line ends with status 1, as Kafka's tools do."""

    def __init__(self, tool: str, description: str) -> None:
        super().__init__(prog=f"kafka-{tool}.sh", description=description, allow_abbrev=True, add_help=False)
        self.add_argument("--help", action="help", help="Print usage information.")
        self.add_argument("--version", action=_Version, nargs=0, help="Display the version.")
        self._obsolete: dict[str, str] = {}

    def flag(self, *names: str, help: str, old: tuple[str, ...] = (), **kwargs: Any) -> None:
        """A flag, with the names it had in older generations."""
        self.add_argument(*names, *old, help=help, **kwargs)

    def switch(self, *names: str, help: str, old: tuple[str, ...] = ()) -> None:
        self.add_argument(*names, *old, help=help, action="store_true")

    def bootstrap(self, *, broker_list: bool = False) -> None:
        """--bootstrap-server, which has a default here, and what came before it."""
        older = ("--broker-list", "--brokers") if broker_list else ()
        self.flag(
            "--bootstrap-server",
            "-b",
            old=older,
            metavar="HOST:PORT,…",
            help=f"The brokers to connect to (default: the context in use, $HEADRACE_BOOTSTRAP or {DEFAULT_BOOTSTRAP}).",
        )
        self.add_argument("--zookeeper", help=argparse.SUPPRESS)

    def command_config(self, *old: str) -> None:
        self.flag(
            "--command-config",
            old=old,
            metavar="FILE",
            type=Path,
            help="Properties for the client, such as security.",
        )

    def obsolete(self, flags: Mapping[str, str], *, takes_value: bool) -> None:
        """Flags that are taken for old scripts' sake; each with a sentence on what became of it."""
        for flag, remark in flags.items():
            destination = f"obsolete_{flag.lstrip('-')}"
            action = {} if takes_value else {"action": "store_true"}
            self.add_argument(flag, dest=destination, help=argparse.SUPPRESS, **action)  # type: ignore[arg-type]
            self._obsolete[destination] = f"{flag} {remark}"

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        options = self.parse_args(arguments)
        for destination, remark in self._obsolete.items():
            if getattr(options, destination):
                note(remark)
        if hasattr(options, "bootstrap_server"):
            options.bootstrap_server = check_bootstrap(_bootstrap(options))
        return options

    def error(self, message: str) -> NoReturn:
        print(f"{message}\nRun {self.prog} --help for its flags.", file=sys.stderr)
        raise SystemExit(1)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from headrace import __version__

        print(f"headrace {__version__}")
        parser.exit()


def note(sentence: str) -> None:
    print(f"NOTE: {sentence}", file=sys.stderr)


def key_values(arguments: list[str] | None, option: str, file: Path | None = None) -> dict[str, str]:
    """The properties of a file, overridden by `key=value` arguments. A bare key is an empty value, as in Kafka."""
    given = properties.load(file) if file is not None else {}
    return {
        **given,
        **properties.from_arguments([a if "=" in a else f"{a}=" for a in arguments or []], option),
    }


def _bootstrap(options: argparse.Namespace) -> str:
    named: str | None = options.bootstrap_server
    if named is not None:
        return named
    chosen = from_environment()
    zookeeper: str | None = options.zookeeper
    if zookeeper is None:
        return chosen or in_use() or DEFAULT_BOOTSTRAP
    way_on = (
        "--zookeeper left Kafka's tools in 3.0, because clients speak to brokers only; use --bootstrap-server"
    )
    # An old tutorial means the cluster on this machine. Anything else might be the wrong one to act upon.
    if zookeeper.split(":")[0] in ("localhost", "127.0.0.1"):
        local = chosen or DEFAULT_BOOTSTRAP
        note(f"{way_on}. Going on with the broker at {local}.")
        return local
    raise Failure(f"{way_on} HOST:PORT with a broker of the cluster that {zookeeper} belongs to.")
