"""What the three requests about ACLs have in common: they need an authorizer that keeps ACLs."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.wire.errors import ErrorCode, KafkaError


def require_acls(context: Context) -> None:
    """SECURITY_DISABLED where no ACL would have an effect."""
    engines = context.engines
    if not engines.guarded:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    if engines.acls is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "The broker's own authorizer does not decide by ACLs.")
