"""SaslHandshake on a connection that is served: a client whose session has a length logs in again.

- Before the login it never comes here: the listener's gate answers it.
- A connection that need not log in, or not again, gets ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import encode_reply
from headrace.wire.messages.sasl_handshake import SaslHandshakeResponse


def handle_frame(context: Context, frame: memoryview, position: int) -> None:
    login = context.connection.login
    if login is None or not login.begin_again(frame):
        refusal = SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
        context.reply(encode_reply(refusal, context.version, context.correlation_id))
