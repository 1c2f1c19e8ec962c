"""GSSAPI (RFC 4752): a Kerberos context, then both sides agree that SASL itself adds no protection to what follows."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from headrace.wire.sasl.errors import SaslError

NO_LAYER = b"\x01\x00\x00\x00"
"""No security layer, and so no buffer for it."""
_NO_LAYER_BIT = 1


class Context(Protocol):
    """A Kerberos context, initiating or accepting."""

    @property
    def complete(self) -> bool: ...

    def step(self, token: bytes | None) -> bytes | None:
        """The next token for the other side, if there is one."""
        ...

    def wrap(self, message: bytes) -> bytes: ...

    def unwrap(self, message: bytes) -> bytes: ...


def client_exchange(context: Context) -> Generator[bytes, bytes]:
    """Yields what to send and takes what came back."""
    token: bytes | None = None
    while not context.complete:
        answer = context.step(token)
        if context.complete and not answer:
            # Nothing left to prove: an empty message asks the broker for its offer.
            token = yield b""
            break
        token = yield answer or b""
    offer = context.unwrap(token or b"")
    if len(offer) != 4 or not offer[0] & _NO_LAYER_BIT:
        raise SaslError("the broker insists on a security layer inside SASL; use TLS instead")
    yield context.wrap(NO_LAYER)


def server_exchange(context: Context) -> Generator[bytes, bytes]:
    """Takes the client's messages and yields the broker's. Ends when the client has chosen no protection."""
    token = yield b""  # The first message is the client's.
    while not context.complete:
        answer = context.step(token)
        if not context.complete or answer:
            token = yield answer or b""
    token = yield context.wrap(NO_LAYER)
    chosen = context.unwrap(token)
    if len(chosen) < 4 or chosen[0] != _NO_LAYER_BIT:
        raise SaslError("the client asks for a security layer inside SASL, which is not offered")
