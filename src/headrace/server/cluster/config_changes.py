"""Changing the settings of topics, brokers, groups, client metrics and the whole cluster: what is allowed, and what changes.

All settings of one resource change together or not at all.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import ConfigResource, MetadataImage, ResourceType
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.cluster.topics import check_topic_name
from headrace.server.config.broker import BrokerConfig, base_setting
from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.client_metrics import (
    CLIENT_METRICS_SETTINGS,
    check_match,
    check_names_and_interval,
)
from headrace.server.config.definition import ConfigError, ConfigType, Setting, UpdateMode, format_value
from headrace.server.config.group_bounds import check_group_settings
from headrace.server.config.group_table import GROUP_SETTINGS
from headrace.server.config.inert import REFUSED, refuse
from headrace.server.config.topic import check_topic_config
from headrace.server.config.topic_table import TOPIC_SETTINGS
from headrace.wire.errors import ErrorCode, KafkaError


class OpType(enum.IntEnum):
    """The operations of IncrementalAlterConfigs, with their numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigOp(NamedTuple):
    name: str
    op: OpType
    value: str | None = None


Errors = dict[ConfigResource, KafkaError | None]


def incremental_alter(
    image: MetadataImage, config: BrokerConfig, requested: Mapping[ConfigResource, Sequence[ConfigOp]]
) -> Outcome[Errors]:
    """Set, delete, append to or subtract from single settings."""
    results: Errors = {}
    changes: list[Change] = []
    for resource, ops in requested.items():
        try:
            _check_ops(ops)
            present = image.configs.get(resource, {})
            values = {op.name: apply_op(resource, op, present.get(op.name)) for op in ops}
            changes += _checked(image, config, resource, present, values)
            results[resource] = None
        except KafkaError as error:
            results[resource] = error
    return Outcome(results, changes)


def replace_all(
    image: MetadataImage, config: BrokerConfig, requested: Mapping[ConfigResource, Mapping[str, str | None]]
) -> Outcome[Errors]:
    """AlterConfigs: replaces all settings of a resource; those not named return to their defaults."""
    results: Errors = {}
    changes: list[Change] = []
    for resource, given in requested.items():
        try:
            missing = [name for name, value in given.items() if value is None]
            if missing:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(missing)}"
                )
            present = image.configs.get(resource, {})
            values: dict[str, str | None] = dict.fromkeys(present)
            values.update(given)
            changes += _checked(image, config, resource, present, values)
            results[resource] = None
        except KafkaError as error:
            results[resource] = error
    return Outcome(results, changes)


def touches(setting: str, changes: Sequence[Change]) -> bool:
    """Whether any of these changes sets or deletes `setting`."""
    return any(isinstance(change, ConfigsChanged) and setting in change.values for change in changes)


def _check_ops(ops: Sequence[ConfigOp]) -> None:
    names = [op.name for op in ops]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys : {','.join(repeated)}"
        )
    missing = [op.name for op in ops if op.value is None and op.op is not OpType.DELETE]
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(missing)}")


def _definition(resource: ConfigResource, name: str) -> Setting | None:
    if resource.type is ResourceType.TOPIC:
        return TOPIC_SETTINGS.get(name)
    if resource.type is ResourceType.GROUP:
        return GROUP_SETTINGS.get(name)
    if resource.type is ResourceType.CLIENT_METRICS:
        return CLIENT_METRICS_SETTINGS.get(name)
    return base_setting(name)


def apply_op(resource: ConfigResource, op: ConfigOp, present: str | None) -> str | None:
    """A setting's value after an operation; None for none."""
    if op.op is OpType.SET:
        return op.value
    if op.op is OpType.DELETE:
        return None
    setting = _definition(resource, op.name)
    if setting is None or setting.type is not ConfigType.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Can't {op.op.name} to key {op.name} because its type is not LIST."
        )
    if present is None:
        present = format_value(setting.default) or ""
    parts = [part for part in present.split(",") if part]
    for part in (op.value or "").split(","):
        if op.op is OpType.SUBTRACT:
            if part in parts:
                parts.remove(part)
        elif part not in parts:
            parts.append(part)
    return ",".join(parts)


def _checked(
    image: MetadataImage,
    config: BrokerConfig,
    resource: ConfigResource,
    present: Mapping[str, str],
    values: Mapping[str, str | None],
) -> list[Change]:
    """The change, after checking that the resource may have these settings."""
    after = {name: value for name, value in {**present, **values}.items() if value is not None}
    try:
        if resource.type is ResourceType.TOPIC:
            _check_topic(image, config, resource.name, after)
        elif resource.type is ResourceType.BROKER:
            _check_broker(image, config, resource.name, after, values)
        elif resource.type is ResourceType.GROUP:
            _check_group(config, resource.name, after)
        elif resource.type is ResourceType.CLIENT_METRICS:
            _check_client_metrics(resource.name, after)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource.type.name}.")
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    changed = {name: value for name, value in values.items() if present.get(name) != value}
    return [ConfigsChanged(resource, changed)] if changed else []


def _check_topic(image: MetadataImage, config: BrokerConfig, topic: str, after: Mapping[str, str]) -> None:
    if not topic:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(topic)
    if topic not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
    check_topic_config(config.topic_config(after))


def _check_broker(
    image: MetadataImage,
    config: BrokerConfig,
    name: str,
    after: Mapping[str, str],
    values: Mapping[str, str | None],
) -> None:
    broker_id: int | None = None
    if name:
        if not name.isascii() or not name.isdigit():
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
        broker_id = int(name)
        if broker_id not in image.brokers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {broker_id} found.")
    fixed: list[str] = []
    single: list[str] = []
    for setting_name, value in values.items():
        setting = base_setting(setting_name)
        if setting is None or setting.update is UpdateMode.READ_ONLY:
            if value is not None:  # A value that an earlier version stored may be deleted.
                fixed.append(setting_name)
        elif setting.update is UpdateMode.PER_BROKER and broker_id is None:
            single.append(setting_name)
    if fixed:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {', '.join(sorted(fixed))}"
        )
    if single:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"{', '.join(sorted(single))}",
        )
    for setting_name, text in after.items():
        setting = base_setting(setting_name)
        if setting is not None:
            setting.parse(text)
            if values.get(setting_name) is not None:
                refuse(REFUSED, setting_name, text, setting.name)
    known = {key: text for key, text in after.items() if key in BROKER_SETTINGS}
    if broker_id is None:
        config.with_dynamic(known, {}).check_dynamic()
    else:
        config.with_dynamic(image.cluster_configs(), known).check_dynamic()


def _check_group(config: BrokerConfig, group: str, after: Mapping[str, str]) -> None:
    if not group:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    check_group_settings(config, after)


def _check_client_metrics(subscription: str, after: Mapping[str, str]) -> None:
    if not subscription:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    try:
        check_names_and_interval(after)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    check_match(after)
