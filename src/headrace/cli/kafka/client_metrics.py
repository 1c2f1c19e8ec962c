"""kafka-client-metrics.sh: which metrics clients push to the brokers (KIP-714)."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

_ACTIONS = ("alter", "list", "describe", "delete")
_SETTINGS = {"interval": "interval.ms", "match": "match", "metrics": "metrics"}
_KIND = "client-metrics"


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    _check(parser, options)
    try:
        from headrace.cli.cluster.connection import connect

        _act(connect(options.bootstrap_server, options.command_config), options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("client-metrics", "Manipulate and describe client metrics configurations.")
    parser.bootstrap()
    parser.command_config()
    parser.switch("--alter", help="Alter the configuration of the client metrics resource.")
    parser.switch("--delete", help="Delete the configuration of the client metrics resource.")
    parser.switch("--describe", help="List configurations of the client metrics resource, or of all of them.")
    parser.switch("--list", help="List the client metrics resources.")
    parser.flag("--name", help="Name of the client metrics resource.")
    parser.switch("--generate-name", help="Generate a UUID to use as the name.")
    parser.flag(
        "--interval", metavar="MS", help="The metrics push interval. Leave empty to reset the interval."
    )
    parser.flag(
        "--match",
        metavar="K=PATTERN,…",
        help="Matching selectors: client_instance_id, client_id, client_software_name, client_software_version, "
        "client_source_address, client_source_port. Leave empty to match all clients.",
    )
    parser.flag(
        "--metrics",
        metavar="PREFIX,…",
        help="Prefixes of names of metrics, * for all. Leave empty to reset the metrics.",
    )
    return parser


def _check(parser: KafkaParser, options: Namespace) -> None:
    if sum(getattr(options, action) for action in _ACTIONS) != 1:
        parser.error("Command must include exactly one action: --alter, --delete, --describe, --list.")
    if options.alter:
        if bool(options.name) == options.generate_name:
            parser.error("One of --name or --generate-name must be specified with --alter.")
        if all(getattr(options, option) is None for option in _SETTINGS):
            parser.error("One of --interval, --match or --metrics must be specified with --alter.")
    elif options.delete and not options.name:
        parser.error("A client metrics resource name must be specified with --delete.")


def _act(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import configs

    if options.list:
        for name in cluster.call(configs.names_with_settings, _KIND):
            print(name)
    elif options.describe:
        _describe(cluster, options.name)
    elif options.delete:
        found = cluster.call(configs.describe, _KIND, [options.name])[options.name]
        cluster.call(
            configs.alter, _KIND, options.name, {}, [each.name for each in found if not each.is_default]
        )
        print(f"Deleted client metrics config for {options.name}.")
    else:
        _alter(cluster, options)


def _alter(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import configs

    name = options.name
    if options.generate_name:
        from headrace.server.cluster.ids import format_id, random_id

        name = format_id(random_id())
    given = {setting: getattr(options, option) for option, setting in _SETTINGS.items()}
    set_ = {setting: value for setting, value in given.items() if value}
    cluster.call(configs.alter, _KIND, name, set_, [key for key, value in given.items() if value == ""])
    print(f"Altered client metrics config for {name}.")


def _describe(cluster: Cluster, name: str | None) -> None:
    from headrace.client.administration import configs

    known = cluster.call(configs.names_with_settings, _KIND)
    if name and name not in known:
        print(f"The client metrics resource '{name}' doesn't exist and doesn't have dynamic config.")
        return
    names = [name] if name else known
    for each, settings in cluster.call(configs.describe, _KIND, names).items():
        print(f"Client metrics configs for {each} are:")
        for setting in settings:
            print(f"  {setting.name}={setting.value}")
