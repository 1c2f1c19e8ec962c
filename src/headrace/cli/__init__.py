"""The `headrace` command. This file is the outermost frame of every command and imports next to nothing,
so that a command answers at once; the work is in the modules that `tree` loads by name.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the `headrace` script."""
    from headrace.cli import frame

    sys.exit(frame.run(lambda: dispatch(sys.argv[1:])))


def dispatch(arguments: list[str]) -> int:
    arguments = _without_context(arguments)
    # Kafka's own tool names have their own grammar (see cli/kafka), so they never reach typer.
    if arguments[:1] == ["kafka"]:
        from headrace.cli.kafka import run as run_kafka_tool

        return run_kafka_tool(arguments[1:])
    if arguments[:1] == ["up"]:
        from headrace.cli.commands.start import read_plain, start, with_default_values

        options = read_plain(arguments[1:])
        if options is not None:
            return start(options)
        arguments = ["up", *with_default_values(arguments[1:])]
    from headrace.cli.tree import run

    return run(arguments)


def _without_context(arguments: list[str]) -> list[str]:
    """`--context NAME` before the command goes into the environment, where Kafka's tools look for it too."""
    option, equals, name = arguments[0].partition("=") if arguments else ("", "", "")
    if option != "--context" or not (equals or len(arguments) > 1):
        return arguments
    os.environ["HEADRACE_CONTEXT"] = name if equals else arguments[1]
    return arguments[1 if equals else 2 :]
