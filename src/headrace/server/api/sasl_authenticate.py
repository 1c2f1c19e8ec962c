"""SaslAuthenticate on a connection that is served: only the gate of a listener answers it, after a SaslHandshake."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(context: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
    )
