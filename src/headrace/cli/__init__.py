"""The `headrace` command. This file is the outermost frame of every command and imports next to nothing,
so that a command answers at once; the work is in the modules that `tree` loads by name.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `headrace` script."""
    from headrace.cli import frame

    sys.exit(frame.run(lambda: dispatch(sys.argv[1:])))


def dispatch(arguments: list[str]) -> int:
    # Kafka's own tool names have their own grammar (see cli/kafka), so they never reach typer.
    if arguments[:1] == ["kafka"]:
        from headrace.cli.kafka import run as run_kafka_tool

        return run_kafka_tool(arguments[1:])
    if arguments[:1] == ["up"]:
        from headrace.cli.start import read_plain, start

        options = read_plain(arguments[1:])
        if options is not None:
            return start(options)
    from headrace.cli.tree import run

    return run(arguments)
