"""Looking up groups, with the nearest name for one that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.cluster.connection import Refused
from headrace.cli.failure import Failure, did_you_mean
from headrace.client.administration import groups, share_groups
from headrace.wire.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster


def describe(cluster: Cluster, group: str) -> groups.Description:
    try:
        return cluster.call(groups.describe, group)
    except Refused as refused:
        if refused.error == ErrorCode.GROUP_ID_NOT_FOUND:
            raise unknown(cluster, group) from None
        raise


def no_share_groups() -> Failure:
    return Failure(
        "This cluster does not offer share groups; when all its brokers run this version, 'headrace features set "
        "share.version=2' switches them on."
    )


def unknown(cluster: Cluster, group: str) -> Failure:
    there = {listing.group: listing for listing in cluster.call(groups.listings, types=groups.ALL_TYPES)}
    if group in there and there[group].type == share_groups.TYPE:
        return no_share_groups()  # it was made before the level was lowered, and is listed, but not described
    hint = did_you_mean(group, there.keys() - {group})
    remedy = hint or " 'headrace groups list' shows what there is."
    return Failure(f"There is no group '{group}'.{remedy}")
