"""Logging in over SASL: PLAIN (RFC 4616) and SCRAM (RFC 5802), as messages out and challenges in, without I/O."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator

from headrace.spark.settings import Login


class LoginError(ConnectionError):
    """The broker and the user do not agree on a password, or the broker does not know its own."""


def exchange(login: Login) -> Generator[bytes, bytes, None]:
    """Yields what to send; takes what came back. Ends when the broker has proved that it knows the password."""
    if login.mechanism == "PLAIN":
        yield b"\0".join((b"", login.username.encode(), login.password.encode()))
        return
    algorithm = "sha256" if login.mechanism == "SCRAM-SHA-256" else "sha512"
    nonce = secrets.token_urlsafe(24)
    name = login.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    parts = _parts(challenge)
    if not parts["r"].startswith(nonce):
        raise LoginError("the broker answered a SCRAM login with another login's nonce")
    salt, rounds = base64.b64decode(parts["s"]), int(parts["i"])
    salted = hashlib.pbkdf2_hmac(algorithm, login.password.encode(), salt, rounds)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    last = f"c=biws,r={parts['r']}"
    message = f"{first},{challenge},{last}".encode()
    signature = hmac.digest(stored_key, message, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = _parts((yield f"{last},p={base64.b64encode(proof).decode()}".encode()).decode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), message, algorithm)
    if not hmac.compare_digest(base64.b64decode(answer.get("v", "")), expected):
        raise LoginError("the broker could not prove that it knows this user's password")


def _parts(text: str) -> dict[str, str]:
    parts = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if "e" in parts:
        raise LoginError(f"the broker refused the login: {parts['e']}")
    return parts
