"""Settings of topics, brokers and groups: reading them, with where they come from, and changing them.

Spoken in the protocol itself: librdkafka cannot name the default of all brokers (an empty name) and drops synonyms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headrace.cli.admin.topics import unknown_topic
from headrace.cli.cluster.connection import Cluster
from headrace.cli.failure import Failure, did_you_mean
from headrace.cli.raw.connection import BrokerConnection
from headrace.cli.raw.refused import check
from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.retired import remark
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
_STATIC = "Cannot update these configs dynamically"


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
    cluster: Cluster, kind: str, names: Sequence[str], *, documentation: bool = False
) -> dict[str, list[Setting]]:
    """Settings by resource name, sorted. An empty broker name is the default of all brokers."""
    found: dict[str, list[Setting]] = {}
    if kind in ("broker", "broker-logger"):
        # A broker answers only for itself.
        for name in names:
            with _broker(cluster, name) as broker:
                found.update(_describe(cluster, broker, kind, [name], documentation))
    elif names:
        with cluster.broker() as broker:
            found = _describe(cluster, broker, kind, names, documentation)
    return found


def alter(
    cluster: Cluster,
    kind: str,
    name: str,
    set_: Mapping[str, str],
    delete: Collection[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    configs = [AlterableConfig(key, _SET, value) for key, value in set_.items()]
    configs += [AlterableConfig(key, _DELETE, None) for key in delete]
    request = IncrementalAlterConfigsRequest(
        [AlterConfigsResource(KINDS[kind], name, configs)], validate_only
    )
    with _broker(cluster, name if kind in ("broker", "broker-logger") else "") as broker:
        if delete:
            _check_known(
                cluster, broker, kind, name, delete
            )  # a broker deletes what is not there without a word
        outcome = broker.ask(request).responses[0]
        if outcome.error_code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
            _check_known(cluster, broker, kind, name, (*set_, *delete))
        if kind == "topic" and outcome.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise unknown_topic(cluster, name)
        if (outcome.error_message or "").startswith(_STATIC):
            raise Failure(
                f"{(outcome.error_message or '').rstrip('.')}. They hold from a broker's start: put them into its settings file, or give "
                "them to 'headrace up --set', and start it again."
            )
        check(outcome.error_code, outcome.error_message)


def _check_known(
    cluster: Cluster, broker: BrokerConnection, kind: str, name: str, keys: Collection[str]
) -> None:
    known = {setting.name for setting in _describe(cluster, broker, kind, [name], False)[name]}
    if kind == "broker":
        known |= BROKER_SETTINGS.keys()  # the default of all brokers has no list of its own
    for key in keys:
        if known and key not in known:
            raise Failure(remark(key) or f"Unknown {kind} setting '{key}'.{did_you_mean(key, known)}")


def _broker(cluster: Cluster, name: str) -> BrokerConnection:
    if name and not name.isdigit():
        raise Failure(f"A broker is named by its number, not '{name}'.")
    return cluster.broker(int(name) if name else None)


def _describe(
    cluster: Cluster, broker: BrokerConnection, kind: str, names: Sequence[str], documentation: bool
) -> dict[str, list[Setting]]:
    resources = [DescribeConfigsResource(KINDS[kind], name) for name in names]
    answer = broker.ask(DescribeConfigsRequest(resources, True, documentation))
    found = {}
    for result in answer.results:
        if kind == "topic" and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise unknown_topic(cluster, result.resource_name)
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
