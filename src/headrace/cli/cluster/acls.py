"""ACLs of the cluster, and what they and the brokers' settings mean for one user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.cli.failure import Failure
from headrace.client.administration import configs
from headrace.client.administration.errors import Refused, check
from headrace.client.administration.session import Session
from headrace.server.config.authorization import OLDER_NAMES, STANDARD, parse_super_users
from headrace.server.security.acl_table import AclTable, Decision
from headrace.server.security.acls import Acl, AclFilter, PatternType
from headrace.server.security.operations import Operation, Resource
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_acls import AclCreation, CreateAclsRequest
from headrace.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.wire.messages.describe_acls import DescribeAclsRequest


def create(session: Session, acls: Iterable[Acl]) -> None:
    """Raises Refused with the broker's reason for the first that was refused; the others are made."""
    answer = session.call(CreateAclsRequest([AclCreation(*acl) for acl in acls]))
    for result in answer.results:
        check(result.error_code, result.error_message)


def describe(session: Session, wanted: AclFilter) -> list[Acl]:
    answer = session.call(DescribeAclsRequest(*wanted))
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


def delete(session: Session, filters: Sequence[AclFilter]) -> list[Acl]:
    """The ACLs that were removed."""
    answer = session.call(DeleteAclsRequest([DeleteAclsFilter(*each) for each in filters]))
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
    session: Session, principal: str, host: str, operation: Operation, resource: Resource
) -> Explanation:
    """Decides as the brokers do, from their ACLs and settings."""
    try:
        acls = describe(session, AclFilter(resource.kind, resource.name, PatternType.MATCH))
    except Refused as refused:
        if refused.code != ErrorCode.SECURITY_DISABLED or "own authorizer" in str(refused):
            raise
        return Explanation(True, "the brokers have no authorizer, so everyone may do everything")
    asked = str(session.nodes[0].id)
    settings = {each.name: each.value or "" for each in configs.describe(session, "broker", [asked])[asked]}
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
