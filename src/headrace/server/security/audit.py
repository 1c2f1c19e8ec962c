"""The audit log: one line per decision, in the words of Kafka's `kafka.authorizer.logger`, denials at INFO and the rest at DEBUG."""

from __future__ import annotations

import logging

from headrace.server.security.acls import pascal
from headrace.server.security.operations import Operation, Resource

AUDIT = logging.getLogger("kafka.authorizer.logger")


def record(
    principal: str,
    host: str,
    operation: Operation,
    resource: Resource,
    allowed: bool,
    rule: object,
    request: str,
    references: int = 1,
) -> None:
    """`references`: how many parts of the request the decision is about."""
    AUDIT.log(
        logging.DEBUG if allowed else logging.INFO,
        "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s "
        "with resourceRefCount = %d based on rule %s",
        _on_one_line(principal),
        "Allowed" if allowed else "Denied",
        operation.name,
        host,
        pascal(resource.kind.name),
        _on_one_line(resource.name),
        request,
        references,
        rule,
    )


def _on_one_line(name: str) -> str:
    """A name is the client's choice; it must not look like another line of the log."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()
