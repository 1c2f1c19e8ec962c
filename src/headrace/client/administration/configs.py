"""Settings of topics, brokers and groups: reading them, with where they come from, and changing them.

Asked through `link/`: librdkafka cannot name the default of all brokers (an empty name), and reports neither documentation nor
which kinds of resources have settings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headrace.client.administration.errors import NotPossible, Refused, UnknownTopic, check
from headrace.client.administration.session import Session
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest

KINDS = {"topic": 2, "broker": 4, "broker-logger": 8, "client-metrics": 16, "group": 32}
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
_SET, _DELETE = 0, 1


@dataclass(frozen=True, slots=True)
class Synonym:
    source: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str | None
    source: str
    sensitive: bool
    read_only: bool
    synonyms: list[Synonym]  # nearest first
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source == "DEFAULT_CONFIG"


def describe(
    session: Session, kind: str, names: Sequence[str], *, documentation: bool = False
) -> dict[str, list[Setting]]:
    """Settings by resource name, sorted. An empty broker name is the default of all brokers."""
    found: dict[str, list[Setting]] = {}
    if kind in ("broker", "broker-logger"):
        # A broker answers only for itself.
        for name in names:
            found.update(_describe(session, kind, [name], documentation, _node(kind, name)))
    elif names:
        found = _describe(session, kind, names, documentation, None)
    return found


def alter(
    session: Session,
    kind: str,
    name: str,
    changes: Mapping[str, str],
    delete: Collection[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    """Change settings, and put those of `delete` back to their defaults; a setting that is not there is deleted silently."""
    configs = [AlterableConfig(key, _SET, value) for key, value in changes.items()]
    configs += [AlterableConfig(key, _DELETE, None) for key in delete]
    request = IncrementalAlterConfigsRequest(
        [AlterConfigsResource(KINDS[kind], name, configs)], validate_only
    )
    outcome = session.call(request, _node(kind, name)).responses[0]
    if kind == "topic" and outcome.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise UnknownTopic(name)
    check(outcome.error_code, outcome.error_message)


def names_with_settings(session: Session, kind: str) -> list[str]:
    """The resources of a kind that exists only through its settings."""
    try:
        answer = session.call(ListConfigResourcesRequest([KINDS[kind]]))
    except Refused as refused:
        if refused.code == ErrorCode.UNSUPPORTED_VERSION:  # a broker too old to have such resources
            return []
        raise
    check(answer.error_code)
    return [found.resource_name for found in answer.config_resources if found.resource_type == KINDS[kind]]


def _node(kind: str, name: str) -> int | None:
    """The broker to ask; None for any."""
    if kind not in ("broker", "broker-logger") or not name:
        return None
    if not name.isdigit():
        raise NotPossible(f"A broker is named by its number, not '{name}'.")
    return int(name)


def _describe(
    session: Session, kind: str, names: Sequence[str], documentation: bool, node: int | None
) -> dict[str, list[Setting]]:
    resources = [DescribeConfigsResource(KINDS[kind], name) for name in names]
    answer = session.call(DescribeConfigsRequest(resources, True, documentation), node)
    found = {}
    for result in answer.results:
        if kind == "topic" and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopic(result.resource_name)
        check(result.error_code, result.error_message)
        found[result.resource_name] = sorted(map(_setting, result.configs), key=lambda setting: setting.name)
    return found


def _setting(config: DescribeConfigsResourceResult) -> Setting:
    return Setting(
        name=config.name,
        value=config.value,
        source=SOURCES.get(config.config_source, "UNKNOWN"),
        sensitive=config.is_sensitive,
        read_only=config.read_only,
        synonyms=[Synonym(SOURCES.get(s.source, "UNKNOWN"), s.name, s.value) for s in config.synonyms],
        documentation=config.documentation or None,
    )
