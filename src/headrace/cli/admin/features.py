"""Feature levels of the cluster: what its brokers support, what holds, and setting it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace import __version__
from headrace.cli.cluster.connection import Cluster
from headrace.cli.failure import Failure
from headrace.cli.raw.refused import check
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Feature:
    name: str
    lowest: int
    highest: int
    level: int
    epoch: int | None


def describe(cluster: Cluster) -> list[Feature]:
    with cluster.broker() as broker:
        answer = broker.ask(ApiVersionsRequest("headrace-cli", __version__))
    check(answer.error_code)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    return sorted(
        (
            Feature(
                each.name,
                each.min_version,
                each.max_version,
                levels.get(each.name, 0),
                epoch if epoch >= 0 else None,
            )
            for each in answer.supported_features
        ),
        key=lambda feature: feature.name,
    )


def update(cluster: Cluster, levels: Mapping[str, int], kind: int, *, dry_run: bool = False) -> None:
    """All of them or none. Raises RequestRefused with the broker's reason."""
    updates = [
        FeatureUpdateKey(name, level, allow_downgrade=kind != UPGRADE, upgrade_type=kind)
        for name, level in levels.items()
    ]
    with cluster.broker() as broker:
        answer = broker.ask(UpdateFeaturesRequest(_TIMEOUT_MS, updates, dry_run))
    check(answer.error_code, answer.error_message)
    for result in answer.results:
        check(result.error_code, result.error_message)


def parse_level(text: str) -> tuple[str, int]:
    """`transaction.version=2`"""
    name, equals, level = text.partition("=")
    if not equals or not name.strip() or not level.strip().isdecimal():
        raise Failure(f"A feature level looks like transaction.version=2, not '{text}'.")
    return name.strip(), int(level)
