"""AlterUserScramCredentials: sets and deletes the SCRAM credentials of users.

- The controller decides; another broker passes the request on. All changes of one user are made, or none.
- A user who is logged in stays so until the session ends, if it has an end (connections.max.reauth.ms).
"""

from __future__ import annotations

from headrace.server.api.context import Context, denied
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import alter_scram
from headrace.server.cluster.scram import requested_users
from headrace.server.security.operations import CLUSTER, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


async def handle(
    context: Context, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    if not context.may_on_cluster(Operation.ALTER):
        message = denied(context.principal, Operation.ALTER, *CLUSTER)
        return _all(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message))
    return await _alter(context, request)


@to_controller
async def _alter(
    context: Context, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    try:
        errors = await context.engines.cluster.decide(alter_scram(request))
    except KafkaError as error:
        return _all(request, error)
    return AlterUserScramCredentialsResponse(
        results=[_result(user, errors[user]) for user in requested_users(request)]
    )


def _all(request: AlterUserScramCredentialsRequest, error: KafkaError) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[_result(user, error) for user in requested_users(request)]
    )


def _result(user: str, error: KafkaError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user, 0, None)
    return AlterUserScramCredentialsResult(user, error.code, error.message)
