"""Changing settings, with a sentence that helps when one is unknown or cannot be changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from headrace.cli.cluster.connection import Refused
from headrace.cli.failure import Failure, did_you_mean
from headrace.client.administration import configs
from headrace.server.config.broker import base_setting
from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.retired import remark
from headrace.wire.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

_STATIC = "Cannot update these configs dynamically"


def alter(
    cluster: Cluster,
    kind: str,
    name: str,
    changes: Mapping[str, str],
    delete: Collection[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    if delete:
        _check_known(
            cluster, kind, name, delete
        )  # a broker silently ignores a deletion of an unknown setting
    try:
        cluster.call(configs.alter, kind, name, changes, delete, validate_only=validate_only)
    except Refused as refused:
        if refused.error in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
            _check_known(cluster, kind, name, (*changes, *delete))
        if refused.sentence.startswith(_STATIC):
            raise Failure(
                f"{refused.sentence.rstrip('.')}. They hold from a broker's start: put them into its settings file, or give "
                "them to 'headrace up --set', and start it again."
            ) from None
        raise


def _check_known(cluster: Cluster, kind: str, name: str, keys: Collection[str]) -> None:
    known = {setting.name for setting in cluster.call(configs.describe, kind, [name])[name]}
    if kind == "broker":
        known |= BROKER_SETTINGS.keys()  # the default of all brokers has no list of its own
    for key in keys:
        if known and key not in known and not (kind == "broker" and base_setting(key)):
            raise Failure(remark(key) or f"Unknown {kind} setting '{key}'.{did_you_mean(key, known)}")
