"""ACLs that change while the broker runs: its authorizer follows those of the metadata."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.policy_changes import AclChanged
from headrace.server.security.acls import Acl
from headrace.server.security.authorizer import Authorizer, StandardAuthorizer


def follow_acls(cluster: ClusterNode, authorizer: Authorizer) -> None:
    """Give an authorizer that decides by ACLs those the cluster has, now and whenever they change."""
    if not isinstance(authorizer, StandardAuthorizer):
        return

    def changed(old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        ids = {change.acl_id for change in changes if isinstance(change, AclChanged)}
        if ids:
            authorizer.change(
                [Acl(*old.acls[each]) for each in ids if each in old.acls],
                [Acl(*new.acls[each]) for each in ids if each in new.acls],
            )

    authorizer.change([], [Acl(*rule) for rule in cluster.image.acls.values()])
    cluster.subscribe(changed)
