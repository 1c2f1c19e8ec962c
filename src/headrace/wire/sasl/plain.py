"""PLAIN (RFC 4616): user and password in one message."""

from __future__ import annotations

from typing import NamedTuple

from headrace.wire.sasl.errors import SaslError

MECHANISM = "PLAIN"


class PlainMessage(NamedTuple):
    """What a client sends. `acts_as` is who it wants to be, if it says so."""

    acts_as: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"PlainMessage({self.acts_as!r}, {self.username!r})"


def client_message(username: str, password: str) -> bytes:
    return b"\0".join((b"", username.encode(), password.encode()))


def read_client_message(message: bytes) -> PlainMessage:
    """SaslError, in Kafka's words, for anything but three parts with a name and a password."""
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise SaslError("Invalid SASL/PLAIN response: it is not UTF-8") from None
    if len(parts) != 3:
        raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
    found = PlainMessage(*parts)
    if not found.username:
        raise SaslError("Authentication failed: username not specified")
    if not found.password:
        raise SaslError("Authentication failed: password not specified")
    if found.acts_as not in ("", found.username):
        raise SaslError(
            "Authentication failed: Client requested an authorization id that is different from username"
        )
    return found
