"""ACLs of the cluster, and what they and the brokers' settings mean for one user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.cli.admin import configs
from headrace.cli.cluster import Cluster
from headrace.cli.failure import Failure
from headrace.cli.raw.refused import RequestRefused, check
from headrace.server.config.authorization import OLDER_NAMES, STANDARD, parse_super_users
from headrace.server.security.acl_table import AclTable, Decision
from headrace.server.security.acls import Acl, AclFilter, PatternType
from headrace.server.security.operations import Operation, Resource
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_acls import AclCreation, CreateAclsRequest
from headrace.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.wire.messages.describe_acls import DescribeAclsRequest


def create(cluster: Cluster, acls: Iterable[Acl]) -> None:
    """Raises RequestRefused with the broker's reason for the first that was refused; the others are made."""
    with cluster.broker() as broker:
        answer = broker.ask(CreateAclsRequest([AclCreation(*acl) for acl in acls]))
    for result in answer.results:
        check(result.error_code, result.error_message)


def describe(cluster: Cluster, wanted: AclFilter) -> list[Acl]:
    with cluster.broker() as broker:
        answer = broker.ask(DescribeAclsRequest(*wanted))
    check(answer.error_code, answer.error_message)
    return [
        Acl(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


def delete(cluster: Cluster, filters: Sequence[AclFilter]) -> list[Acl]:
    """The ACLs that were removed."""
    with cluster.broker() as broker:
        answer = broker.ask(DeleteAclsRequest([DeleteAclsFilter(*each) for each in filters]))
    removed: dict[Acl, None] = {}
    for result in answer.filter_results:
        check(result.error_code, result.error_message)
        for acl in result.matching_acls:
            removed[
                Acl(
                    acl.resource_type,
                    acl.resource_name,
                    acl.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
            ] = None
    return list(removed)


@dataclass(frozen=True, slots=True)
class Explanation:
    allowed: bool
    reason: str
    acl: Acl | None = None


def explain(
    cluster: Cluster, principal: str, host: str, operation: Operation, resource: Resource
) -> Explanation:
    """Decides as the brokers do, from their ACLs and settings."""
    try:
        acls = describe(cluster, AclFilter(resource.kind, resource.name, PatternType.MATCH))
    except RequestRefused as refused:
        if refused.error is not ErrorCode.SECURITY_DISABLED or "own authorizer" in refused.sentence:
            raise
        return Explanation(True, "the brokers have no authorizer, so everyone may do everything")
    asked = str(cluster.nodes[0].id)
    settings = {each.name: each.value or "" for each in configs.describe(cluster, "broker", [asked])[asked]}
    authorizer = settings.get("authorizer.class.name", STANDARD)
    if authorizer not in (STANDARD, *OLDER_NAMES):
        raise Failure(f"Only {authorizer} itself can explain what it decides.")
    table = AclTable(
        acls,
        parse_super_users(settings.get("super.users", "")),
        settings.get("allow.everyone.if.no.acl.found", "").lower() == "true",
    )
    decision = table.decide(principal, host, operation, resource)
    return Explanation(decision.allowed, _reason(decision, principal, bool(acls)), decision.acl)


def _reason(decision: Decision, principal: str, has_acls: bool) -> str:
    if decision.acl is not None:
        return "by an ACL"
    if decision.otherwise == "SuperUser":
        return f"{principal} is among super.users"
    if decision.allowed:
        return "the resource has no ACL, and allow.everyone.if.no.acl.found is true"
    if has_acls:
        return "the resource has ACLs, and none of them allows it"
    return "no ACL allows it, and allow.everyone.if.no.acl.found is false"
