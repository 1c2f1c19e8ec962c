"""Feature levels: behaviour that the whole cluster switches at once, and by which clients choose their protocol.

Every broker of this version supports the same levels. A level that is not set is the highest one, except where a level brings
changes to the metadata that older brokers cannot read: that one is raised by an operator when no older broker is left.
"""

from __future__ import annotations

from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import FeatureChanged
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
TOKEN_VERSION = "delegation.token.version"
SHARE_VERSION = "share.version"
MIRROR_VERSION = "mirror.version"

SUPPORTED = {
    GROUP_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    TOKEN_VERSION: (0, 1),
    SHARE_VERSION: (0, 2),
    MIRROR_VERSION: (0, 1),
}
"""Lowest and highest level. Groups: 1 has the consumer protocol (KIP-848). Transactions: 1 has tagged fields in the
records of `__transaction_state`, 2 an epoch per transaction (KIP-890). Delegation tokens: 1 keeps them in the metadata. Share
groups (KIP-932): 1 has them, with their records in `__consumer_offsets` and `__share_group_state`, 2 their dead letters (KIP-1191).
Mirrors: 1 keeps links to other clusters in the metadata."""

RAISED_BY_HAND = frozenset({TOKEN_VERSION, SHARE_VERSION, MIRROR_VERSION})
"""Features whose level is the lowest until somebody raises it, so that a cluster can go back to older brokers until then."""

STAYS_RAISED = frozenset({TOKEN_VERSION, MIRROR_VERSION})
"""Features that cannot be lowered: older brokers cannot read the metadata any more."""

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def level(image: MetadataImage, name: str) -> int:
    """The feature's current level."""
    lowest, highest = SUPPORTED[name]
    return image.features.get(name, lowest if name in RAISED_BY_HAND else highest)


def begin(image: MetadataImage) -> list[Change]:
    """A new cluster, of which no older broker has a part, has share groups from the beginning."""
    if SHARE_VERSION in image.features:
        return []
    return [FeatureChanged(SHARE_VERSION, SUPPORTED[SHARE_VERSION][1])]


def update_features(image: MetadataImage, request: UpdateFeaturesRequest) -> Outcome[None]:
    """All updates, or KafkaError for the first that is not allowed."""
    changes: list[Change] = []
    for update in request.feature_updates:
        _check(image, update)
        if level(image, update.feature) != update.max_version_level:
            changes.append(FeatureChanged(update.feature, update.max_version_level))
    return Outcome(None, changes)


def _check(image: MetadataImage, update: FeatureUpdateKey) -> None:
    name, wanted = update.feature, update.max_version_level

    def invalid(reason: str) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {wanted} for feature {name}. {reason}"
        )

    if name not in SUPPORTED:
        known = ", ".join(SUPPORTED)
        raise invalid(f"There is no such feature; {known} can be set.")
    lowest, highest = SUPPORTED[name]
    if not lowest <= wanted <= highest:
        raise invalid(f"The brokers support the levels {lowest} to {highest}.")
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise invalid(f"There is no upgrade type {update.upgrade_type}.")
    current = level(image, name)
    if wanted < current and name in STAYS_RAISED:
        raise invalid("The metadata already has what older versions cannot read, so it cannot be lowered.")
    if wanted < current and update.upgrade_type == UPGRADE:
        raise invalid("A lower level needs the upgrade type safe or unsafe downgrade.")
    if wanted > current and update.upgrade_type != UPGRADE:
        raise invalid(f"The level is {current} now: a downgrade cannot raise it.")
