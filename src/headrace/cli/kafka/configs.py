"""kafka-configs.sh: topics, users, brokers, broker loggers, groups and client metrics."""

from __future__ import annotations

import argparse
import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli import properties
from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.admin.configs import Setting
    from headrace.cli.cluster import Cluster

_TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
_QUOTAS = ("clients", "ips")
# The source that makes a setting the entity's own.
_OWN = {
    "topics": "DYNAMIC_TOPIC_CONFIG",
    "brokers": "DYNAMIC_BROKER_CONFIG",
    "client-metrics": "DYNAMIC_CLIENT_METRICS_CONFIG",
    "groups": "DYNAMIC_GROUP_CONFIG",
}


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    try:
        kind, name = _entity(parser, options)
        _check(options, kind, name)

        from headrace.cli.cluster import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        if kind == "users":
            _users(cluster, options, name)
        elif options.alter:
            _alter(cluster, options, kind, name or "")
        else:
            _describe(cluster, options, kind, name)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("configs", "Describe and alter the settings of topics, brokers, groups and more.")
    parser.bootstrap()
    parser.flag("--bootstrap-controller", help=argparse.SUPPRESS)
    parser.command_config()
    parser.switch("--alter", help="Alter the settings of the entity.")
    parser.switch("--describe", help="List the settings of the entity.")
    parser.switch("--all", help="With --describe: also static and default settings.")
    parser.flag("--entity-type", action="append", help=f"One of {', '.join(_TYPES)}.")
    parser.flag("--entity-name", help="The topic, broker id, group, …")
    parser.switch("--entity-default", help="The default of all brokers.")
    parser.flag(
        "--add-config", metavar="K=V,…", help="Settings to add; brackets group values with commas: k=[a,b]."
    )
    parser.flag("--add-config-file", type=Path, metavar="FILE", help="A properties file of settings to add.")
    parser.flag("--delete-config", metavar="K,…", help="Settings to take back.")
    for kind in ("topic", "client", "user", "broker", "broker-logger", "ip", "group", "client-metrics"):
        parser.flag(f"--{kind}", help=f"Short for --entity-type {_plural(kind)} --entity-name.")
    for kind in ("client", "user", "broker", "ip"):
        parser.switch(f"--{kind}-defaults", help=f"Short for --entity-type {kind}s --entity-default.")
    parser.obsolete({"--force": "is ignored: no question is asked."}, takes_value=False)
    return parser


def _plural(kind: str) -> str:
    return kind if kind.endswith("s") else f"{kind}s"


def _entity(parser: KafkaParser, options: Namespace) -> tuple[str, str | None]:
    """The type, and the name: None when every entity is meant, empty for the default."""
    if options.alter == options.describe:
        parser.error("Command must include exactly one action: --describe, --alter")
    if options.bootstrap_controller is not None:
        raise Failure(
            "--bootstrap-controller speaks to a KRaft controller; use --bootstrap-server, which every broker answers."
        )
    kinds = list(options.entity_type or [])
    name: str | None = "" if options.entity_default else options.entity_name
    for kind in ("topic", "client", "user", "broker", "broker-logger", "ip", "group", "client-metrics"):
        value = getattr(options, kind.replace("-", "_"))
        if value is not None:
            kinds.append(_plural(kind))
            name = value
    for kind in ("client", "user", "broker", "ip"):
        if getattr(options, f"{kind}_defaults"):
            kinds.append(f"{kind}s")
            name = ""
    if not kinds:
        raise Failure("At least one entity type must be specified")
    for kind in kinds:
        if kind not in _TYPES:
            raise Failure(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
        if kind in _QUOTAS:
            raise Failure(
                f"Quotas and credentials of {kind} are not offered by this tool yet; topics, brokers and groups are."
            )
    if len(kinds) > 1:
        raise Failure("Only 'users' and 'clients' entity types may be specified together")
    return kinds[0], name


def _check(options: Namespace, kind: str, name: str | None) -> None:
    if kind in ("brokers", "broker-loggers") and name and not name.isdigit():
        raise Failure(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
    if options.alter:
        if name is None or (not name and kind != "brokers"):
            raise Failure(f"An entity name must be specified with --alter of {kind}")
        if options.add_config and options.add_config_file:
            raise Failure("Only one of --add-config or --add-config-file must be specified")
        if not (options.add_config or options.add_config_file or options.delete_config):
            raise Failure(
                "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
            )
    elif kind == "broker-loggers" and not name:
        raise Failure("An entity name must be specified with --describe of broker-loggers")


def _users(cluster: Cluster, options: Namespace, name: str | None) -> None:
    from headrace.cli.kafka import user_credentials

    if options.describe:
        user_credentials.describe(cluster, name)
        return
    add, delete = _changes(options)
    unexpected = [key for key in (*add, *delete) if not user_credentials.is_credential(key)]
    if unexpected:
        raise Failure(
            "Only SCRAM credential configs can be changed for 'users' using '--bootstrap-server'. "
            f"Unexpected config names: {', '.join(unexpected)}"
        )
    user_credentials.alter(cluster, name or "", add, delete)
    print(f"Completed updating config for user {name}.")


def _changes(options: Namespace) -> tuple[dict[str, str], list[str]]:
    """What to add and what to delete."""
    add = (
        properties.load(options.add_config_file)
        if options.add_config_file
        else _added(options.add_config or "")
    )
    return add, [key.strip() for key in (options.delete_config or "").split(",") if key.strip()]


def _alter(cluster: Cluster, options: Namespace, kind: str, name: str) -> None:
    from headrace.cli.admin import configs

    add, delete = _changes(options)
    if delete:
        held = {s.name for s in _own(configs.describe(cluster, _singular(kind), [name])[name], kind, name)}
        unknown = [key for key in delete if key not in held]
        if unknown:
            raise Failure(f"Invalid config(s): {','.join(unknown)}")
    configs.alter(cluster, _singular(kind), name, add, delete)
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _describe(cluster: Cluster, options: Namespace, kind: str, name: str | None) -> None:
    from headrace.cli.admin import configs

    names = _entities(cluster, kind) if name is None else [name]
    if name and not options.all and name not in _entities(cluster, kind):
        print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for entity in names:
        if entity:
            print(f"{'All' if options.all else 'Dynamic'} configs for {kind[:-1]} {entity} are:")
        else:
            print(f"Default configs for {kind} in the cluster are:")
        found = configs.describe(cluster, _singular(kind), [entity])[entity]
        for setting in found if options.all else _own(found, kind, entity):
            synonyms = ", ".join(f"{s.source}:{s.name}={_text(s.value)}" for s in setting.synonyms)
            sensitive = str(setting.sensitive).lower()
            print(f"  {setting.name}={_text(setting.value)} sensitive={sensitive} synonyms={{{synonyms}}}")


def _own(settings: list[Setting], kind: str, name: str) -> list[Setting]:
    if kind == "broker-loggers":
        return settings
    source = "DYNAMIC_DEFAULT_BROKER_CONFIG" if kind == "brokers" and not name else _OWN[kind]
    return [setting for setting in settings if setting.source == source]


def _entities(cluster: Cluster, kind: str) -> list[str]:
    from headrace.cli.admin import groups, topics
    from headrace.cli.admin.config_resources import names_with_settings

    if kind == "topics":
        return topics.names(cluster, internal=True)
    if kind in ("brokers", "broker-loggers"):
        return [*(str(node.id) for node in cluster.nodes), ""]
    if kind == "groups":
        listed = {listing.group for listing in groups.listings(cluster)}
        return sorted(listed | set(names_with_settings(cluster, "group")))
    return sorted(names_with_settings(cluster, "client-metrics"))


def _added(text: str) -> dict[str, str]:
    """k1=v1,k2=[a,b]: commas and equals signs inside brackets belong to the value."""
    outside = r"(?=[^\]]*(?:\[|$))"
    added: dict[str, str] = {}
    for pair in re.split("," + outside, text) if text else []:
        parts = re.split(r"\s*=\s*" + outside, pair)
        if len(parts) != 2:
            raise Failure(
                'Invalid entity config: all configs to be added must be in the format "key=val" or  "key=[val1,val2]" '
                "to group values which contain commas."
            )
        added[parts[0].strip()] = parts[1].replace("[", "").replace("]", "").strip()
    return added


def _singular(kind: str) -> str:
    return kind if kind == "client-metrics" else kind[:-1]


def _text(value: str | None) -> str:
    return "null" if value is None else value
