"""kafka-configs.sh: topics, brokers, broker loggers, groups and client metrics; `quota_configs` and `user_credentials` have users,
clients and ips."""

from __future__ import annotations

import argparse
import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka import quota_configs, user_credentials
from headrace.cli.kafka.arguments import KafkaParser
from headrace.cli.parsing import properties

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.configs import Setting

_TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
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
        kinds, names = _entities_named(parser, options)
        kind, name = kinds[0], names[0] if names else None
        _check(options, kind, name)

        from headrace.cli.cluster.connection import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        if options.alter:
            _alter(cluster, options, kinds, names)
        elif kind in quota_configs.TYPES:
            quota_configs.describe(cluster, kinds, names)
            if kinds == ["users"] and name != "":
                user_credentials.describe(cluster, name)
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
    parser.flag(
        "--entity-name", action="append", help="The topic, broker id, user, client id, address, group, …"
    )
    parser.flag(
        "--entity-default",
        action="append_const",
        dest="entity_name",
        const="",
        help="The default of all brokers, users, clients or ips.",
    )
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


def _entities_named(parser: KafkaParser, options: Namespace) -> tuple[list[str], list[str]]:
    """Types, and names in their order: an empty one is the default, a type without one means every entity."""
    if options.alter == options.describe:
        parser.error("Command must include exactly one action: --describe, --alter")
    if options.bootstrap_controller is not None:
        raise Failure(
            "--bootstrap-controller speaks to a KRaft controller; use --bootstrap-server, which every broker answers."
        )
    kinds = list(options.entity_type or [])
    names = list(options.entity_name or [])
    for kind in ("topic", "client", "user", "broker", "broker-logger", "ip", "group", "client-metrics"):
        value = getattr(options, kind.replace("-", "_"))
        if value is not None:
            kinds.append(_plural(kind))
            names.append(value)
    for kind in ("client", "user", "broker", "ip"):
        if getattr(options, f"{kind}_defaults"):
            kinds.append(f"{kind}s")
            names.append("")
    if not kinds:
        raise Failure("At least one entity type must be specified")
    for kind in kinds:
        if kind not in _TYPES:
            raise Failure(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if len(set(kinds)) < len(kinds):
        twice = ",".join(dict.fromkeys(kind for kind in kinds if kinds.count(kind) > 1))
        raise Failure(f"Duplicate entity type(s) specified: {twice}")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise Failure("Only 'users' and 'clients' entity types may be specified together")
    return kinds, names


def _check(options: Namespace, kind: str, name: str | None) -> None:
    if kind in ("brokers", "broker-loggers") and name and not name.isdigit():
        raise Failure(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
    if kind == "ips" and name:
        quota_configs.check_address(name)
    if options.alter:
        has_default = kind == "brokers" or kind in quota_configs.TYPES
        if name is None and has_default:
            raise Failure(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
        if not name and not has_default:
            raise Failure(f"An entity name must be specified with --alter of {kind}")
        if options.add_config and options.add_config_file:
            raise Failure("Only one of --add-config or --add-config-file must be specified")
        if not (options.add_config or options.add_config_file or options.delete_config):
            raise Failure(
                "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
            )
    elif kind == "broker-loggers" and not name:
        raise Failure("An entity name must be specified with --describe of broker-loggers")


def _alter(cluster: Cluster, options: Namespace, kinds: list[str], names: list[str]) -> None:
    kind, name = kinds[0], names[0]
    add = (
        properties.load(options.add_config_file)
        if options.add_config_file
        else _added(options.add_config or "")
    )
    delete = [key.strip() for key in (options.delete_config or "").split(",") if key.strip()]
    if kind in quota_configs.TYPES:
        _alter_clients(cluster, kinds, names, add, delete)
    else:
        _alter_settings(cluster, kind, name, add, delete)
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _alter_clients(
    cluster: Cluster, kinds: list[str], names: list[str], add: dict[str, str], delete: list[str]
) -> None:
    """Credentials of a user, quotas, or both."""
    passwords: dict[str, str] = {}
    removed: list[str] = []
    if kinds == ["users"] and names[0]:
        passwords = {key: value for key, value in add.items() if user_credentials.is_credential(key)}
        removed = [key for key in delete if user_credentials.is_credential(key)]
        add = {key: value for key, value in add.items() if key not in passwords}
        delete = [key for key in delete if key not in removed]
    if add or delete:
        quota_configs.alter(cluster, kinds, names, add, delete)
    if passwords or removed:
        user_credentials.alter(cluster, names[0], passwords, removed)


def _alter_settings(cluster: Cluster, kind: str, name: str, add: dict[str, str], delete: list[str]) -> None:
    from headrace.cli.cluster import settings
    from headrace.client.administration import configs

    if delete:
        held = {
            s.name for s in _own(cluster.call(configs.describe, _singular(kind), [name])[name], kind, name)
        }
        unknown = [key for key in delete if key not in held]
        if unknown:
            raise Failure(f"Invalid config(s): {','.join(unknown)}")
    settings.alter(cluster, _singular(kind), name, add, delete)


def _describe(cluster: Cluster, options: Namespace, kind: str, name: str | None) -> None:
    from headrace.client.administration import configs

    names = _entities(cluster, kind) if name is None else [name]
    if name and not options.all and name not in _entities(cluster, kind):
        print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for entity in names:
        if entity:
            print(f"{'All' if options.all else 'Dynamic'} configs for {kind[:-1]} {entity} are:")
        else:
            print(f"Default configs for {kind} in the cluster are:")
        found = cluster.call(configs.describe, _singular(kind), [entity])[entity]
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
    from headrace.client.administration import configs, groups, topics

    if kind == "topics":
        return cluster.call(topics.names, internal=True)
    if kind in ("brokers", "broker-loggers"):
        return [*(str(node.id) for node in cluster.nodes), ""]
    if kind == "groups":
        listed = {listing.group for listing in cluster.call(groups.listings)}
        return sorted(listed | set(cluster.call(configs.names_with_settings, "group")))
    return sorted(cluster.call(configs.names_with_settings, "client-metrics"))


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
