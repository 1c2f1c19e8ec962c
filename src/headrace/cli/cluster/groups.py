"""Looking up groups, with the nearest name for one that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.cluster.connection import Refused
from headrace.cli.failure import Failure, did_you_mean
from headrace.client.administration import groups
from headrace.wire.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster


def describe(cluster: Cluster, group: str, *, with_share: bool = False) -> groups.Description:
    from headrace.client.administration.share_groups import describe_any

    try:
        return cluster.call(describe_any if with_share else groups.describe, group)
    except Refused as refused:
        if refused.error == ErrorCode.GROUP_ID_NOT_FOUND:
            raise unknown(cluster, group, with_share=with_share) from None
        raise


def unknown(cluster: Cluster, group: str, *, with_share: bool = False) -> Failure:
    there = cluster.call(groups.listings, with_share=with_share)
    hint = did_you_mean(group, [listing.group for listing in there])
    remedy = hint or " 'headrace groups list' shows what there is."
    return Failure(f"There is no group '{group}'.{remedy}")
