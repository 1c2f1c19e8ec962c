"""Logging in over SASL as a client: PLAIN (RFC 4616) and SCRAM (RFC 5802), messages out and challenges in, without I/O."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Generator
from dataclasses import dataclass, field

SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *SCRAM)


class SaslError(ConnectionError):
    """The broker refused the login, or could not prove that it knows the password itself."""


@dataclass(frozen=True, slots=True)
class Login:
    mechanism: str
    username: str
    password: str = field(repr=False)


def client_exchange(login: Login) -> Generator[bytes, bytes, None]:
    """Yields what to send and receives the answers. Ends when the broker has proved that it knows the password."""
    if login.mechanism == "PLAIN":
        yield b"\0".join((b"", login.username.encode(), login.password.encode()))
        return
    algorithm = SCRAM[login.mechanism]
    nonce = secrets.token_urlsafe(24)
    name = login.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode(errors="replace")
    salt, rounds, both_nonces = _challenge(challenge, nonce)
    salted = hashlib.pbkdf2_hmac(algorithm, login.password.encode(), salt, rounds)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    last = f"c=biws,r={both_nonces}"
    message = f"{first},{challenge},{last}".encode()
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), message, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = _attributes(
        (yield f"{last},p={base64.b64encode(proof).decode()}".encode()).decode(errors="replace")
    )
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), message, algorithm)
    if not hmac.compare_digest(answer.get("v", "").encode(), base64.b64encode(expected)):
        raise SaslError("the broker could not prove that it knows this user's password")


def _challenge(text: str, nonce: str) -> tuple[bytes, int, str]:
    """(salt, rounds, both nonces) of the broker's first message."""
    attributes = _attributes(text)
    try:
        salt, rounds = base64.b64decode(attributes["s"], validate=True), int(attributes["i"])
    except (KeyError, ValueError, binascii.Error):
        raise SaslError("the broker's SCRAM challenge cannot be read") from None
    both = attributes.get("r", "")
    if not both.startswith(nonce) or rounds < 1:
        raise SaslError("the broker's SCRAM challenge does not belong to this login")
    return salt, rounds, both


def _attributes(text: str) -> dict[str, str]:
    attributes = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if "e" in attributes:
        raise SaslError(f"the broker refused the login: {attributes['e']}")
    return attributes
