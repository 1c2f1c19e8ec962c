"""DescribeUserScramCredentials: which SCRAM mechanisms users have, and with how many iterations; never a key."""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.cluster.scram import describe_scram
from headrace.server.security.operations import Operation
from headrace.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


@requires_on_cluster(Operation.DESCRIBE)
def handle(
    context: Context, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    users = None if request.users is None else [user.name for user in request.users]
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=describe_scram(context.engines.cluster.image, users)
    )
