"""Feature levels of the cluster: what its brokers support, what holds, and setting it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace import __version__
from headrace.client.administration.errors import check
from headrace.client.administration.session import Session
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


def describe(session: Session) -> list[Feature]:
    answer = session.call(ApiVersionsRequest("headrace", __version__))
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


def update(session: Session, levels: Mapping[str, int], kind: int, *, dry_run: bool = False) -> None:
    """All of them or none. Raises Refused with the broker's reason."""
    updates = [
        FeatureUpdateKey(name, level, allow_downgrade=kind != UPGRADE, upgrade_type=kind)
        for name, level in levels.items()
    ]
    answer = session.call(UpdateFeaturesRequest(_TIMEOUT_MS, updates, dry_run))
    check(answer.error_code, answer.error_message)
    for result in answer.results:
        check(result.error_code, result.error_message)
