"""kafka-storage.sh: what is left to do before a broker's first start, which is nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser, note

_ACTIONS = ("info", "format", "random-uuid", "version-mapping", "feature-dependencies")


def run(arguments: list[str]) -> int:
    parser = KafkaParser("storage", "The Kafka storage tool: random-uuid, info -c FILE, format.")
    parser.add_argument("action", choices=_ACTIONS, help="What to do.")
    parser.flag("--config", "-c", type=Path, metavar="FILE", help="The broker's server.properties.")
    parser.flag("--cluster-id", "-t", help="With format: accepted.")
    parser.switch("--standalone", "-s", help="With format: accepted.")
    parser.switch("--no-initial-controllers", "-N", help="With format: accepted.")
    parser.switch("--ignore-formatted", "-g", help="With format: accepted.")
    parser.flag("--initial-controllers", "-I", help="With format: accepted.")
    parser.flag("--release-version", "-r", help="With format: accepted.")
    parser.flag("--feature", "-f", action="append", help="With format: accepted.")
    parser.flag(
        "--add-scram", "-S", action="append", help="Not here: use kafka-configs.sh --add-config SCRAM-…."
    )
    options = parser.parse(arguments)
    if options.action == "random-uuid":
        print(_random_uuid())
        return Exit.OK
    if options.action in ("version-mapping", "feature-dependencies"):
        print(
            f"'{options.action}' is about Kafka's metadata versions, which do not exist here; 'kafka-features.sh describe' "
            "shows the feature levels of a cluster.",
            file=sys.stderr,
        )
        return Exit.FAILED
    try:
        return _info(options.config) if options.action == "info" else _format(options.add_scram)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED


def _random_uuid() -> str:
    import base64
    import uuid

    while True:  # Kafka's ids do not begin with a dash, which would be a flag.
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _format(scram: list[str] | None) -> int:
    if scram:
        raise Failure(
            "Users are not added by formatting here: start the broker, and use kafka-configs.sh --alter "
            "--entity-type users --add-config 'SCRAM-SHA-512=[password=…]'."
        )
    note(
        "nothing to format: a broker makes its data directories, and its cluster an id, when it first starts."
    )
    return Exit.OK


def _info(config: Path | None) -> int:
    if config is None:
        raise Failure("Name the broker's settings: kafka-storage.sh info -c server.properties.")
    from headrace.cli.parsing import properties
    from headrace.server.config.broker import BrokerConfig
    from headrace.server.config.definition import ConfigError

    try:
        broker = BrokerConfig.load(properties.load(config))
    except ConfigError as error:
        raise Failure(str(error)) from None
    directories = [str(path.absolute()) for path in broker.log_dirs]
    found = [path for path in directories if os.path.isdir(path)]
    print(f"Found log director{'y' if len(found) == 1 else 'ies'}:" if found else "No directories found:")
    for path in found:
        print(f"  {path}")
    print()
    for path in found:
        meta = Path(path, "meta.properties")
        if meta.exists():
            pairs = dict(
                line.split("=", 1) for line in meta.read_text().splitlines() if "=" in line and line[0] != "#"
            )
            shown = ", ".join(f"{name}={value}" for name, value in sorted(pairs.items()))
            print(f"Found metadata: {{{shown}}}")
            print()
    fresh = [path for path in directories if not Path(path, "meta.properties").exists()]
    for path in fresh:
        print(f"{path} has not been used yet; the broker makes it when it starts.")
    return Exit.OK
