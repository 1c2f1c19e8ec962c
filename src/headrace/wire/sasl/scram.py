"""SCRAM (RFC 5802, RFC 7677): client and broker prove to each other that they know a password, without sending it.

A broker keeps a `ScramCredential`, from which the password cannot be had back.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from headrace.wire.sasl.errors import SaslError

ALGORITHMS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""By mechanism."""
FEWEST_ITERATIONS = 4096
MOST_ITERATIONS = 16384
"""Kafka's bounds for the credentials a broker keeps."""
MOST_ITERATIONS_ASKED = 1_000_000
"""What a client hashes at most. Other brokers may keep credentials with more iterations than Kafka's; this many take about a second,
and a broker that asks for a billion would only keep the client busy."""
NO_BINDING = "n,,"
"""The header of a client that asks for no channel binding and is nobody but itself."""

_FIRST = re.compile(
    r"n,(?:a=(?P<acts_as>[^,]*))?,(?P<bare>n=(?P<name>[^,]+),r=(?P<nonce>[!-+\--~]+)(?P<more>(?:,[^,=]+=[^,]*)*))"
)
_FINAL = re.compile(
    r"(?P<unproved>c=(?P<binding>[^,]+),r=(?P<nonce>[^,]+)(?:,[^,=]+=[^,]*)*?),p=(?P<proof>[^,]+)"
)
_ESCAPE = re.compile(r"=(?!2C|3D)")


class WrongProof(SaslError):
    """The client does not know the password."""


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The slow part, by design: a few milliseconds."""
    return hashlib.pbkdf2_hmac(ALGORITHMS[mechanism], password.encode(), salt, iterations)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker keeps of a password."""

    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of_password(cls, mechanism: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
        return cls.of_salted(
            mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations
        )

    @classmethod
    def of_salted(cls, mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
        algorithm = ALGORITHMS[mechanism]
        client_key = hmac.digest(salted, b"Client Key", algorithm)
        return cls(
            salt,
            iterations,
            hashlib.new(algorithm, client_key).digest(),
            hmac.digest(salted, b"Server Key", algorithm),
        )


# --- the client's side ---


def client_exchange(
    mechanism: str, username: str, password: str, extensions: Mapping[str, str] | None = None
) -> Generator[bytes, bytes]:
    """Yields what to send and takes what came back. Ends when the broker has proved that it knows the password."""
    algorithm = ALGORITHMS[mechanism]
    nonce = secrets.token_urlsafe(24)
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}" + "".join(f",{key}={value}" for key, value in (extensions or {}).items())
    challenge = (yield f"{NO_BINDING}{first}".encode()).decode(errors="replace")
    salt, iterations, both_nonces = _challenge(challenge, nonce)
    salted = salted_password(mechanism, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    last = f"c={_base64(NO_BINDING.encode())},r={both_nonces}"
    message = f"{first},{challenge},{last}".encode()
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), message, algorithm)
    answer = _attributes(
        (yield f"{last},p={_base64(_xor(client_key, signature))}".encode()).decode(errors="replace")
    )
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), message, algorithm)
    if not hmac.compare_digest(answer.get("v", "").encode(), _base64(expected).encode()):
        raise SaslError("the broker could not prove that it knows this user's password")


def _challenge(text: str, nonce: str) -> tuple[bytes, int, str]:
    """(salt, iterations, both nonces) of the broker's first message."""
    attributes = _attributes(text)
    try:
        salt, iterations = base64.b64decode(attributes["s"], validate=True), int(attributes["i"])
    except (KeyError, ValueError, binascii.Error):
        raise SaslError("the broker's SCRAM challenge cannot be read") from None
    both = attributes.get("r", "")
    if not both.startswith(nonce):
        raise SaslError("the broker's SCRAM challenge does not belong to this login")
    if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS_ASKED:
        # Few iterations would make it cheap to guess the password from the client's proof.
        raise SaslError(
            f"the broker asks for {iterations} SCRAM iterations, allowed are {FEWEST_ITERATIONS} to {MOST_ITERATIONS_ASKED}; "
            "set the user's password anew with a number in between"
        )
    return salt, iterations, both


def _attributes(text: str) -> dict[str, str]:
    attributes = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if "e" in attributes:
        raise SaslError(f"the broker refused the login: {attributes['e']}")
    return attributes


# --- the broker's side ---


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """A client's first message: who it says it is."""

    username: str
    extensions: Mapping[str, str]
    nonce: str
    bare: str
    """The part that is proved later."""
    header: str
    """What stands before it."""


def read_client_first(message: bytes) -> ClientFirst:
    text = _text(message)
    match = _FIRST.fullmatch(text)
    if match is None:
        raise SaslError("Invalid SCRAM client first message format")
    username = _unescaped(match["name"])
    if match["acts_as"] and _unescaped(match["acts_as"]) != username:
        raise SaslError(
            "Authentication failed: Client requested an authorization id that is different from username"
        )
    extensions = dict(part.split("=", 1) for part in match["more"].split(",") if part)
    return ClientFirst(username, extensions, match["nonce"], match["bare"], text[: match.start("bare")])


class ScramChallenge:
    """The broker's question to one client, and the judgement of its answer."""

    def __init__(self, mechanism: str, first: ClientFirst, credential: ScramCredential) -> None:
        self._algorithm = ALGORITHMS[mechanism]
        self._first = first
        self._credential = credential
        self._nonce = first.nonce + secrets.token_urlsafe(24)
        salt = _base64(credential.salt)
        self.text = f"r={self._nonce},s={salt},i={credential.iterations}"

    def judge(self, message: bytes) -> bytes:
        """The proof for the client that the broker knows it, too; SaslError when the client's own proof is wrong."""
        match = _FINAL.fullmatch(_text(message))
        if match is None:
            raise SaslError("Invalid SCRAM client final message format")
        try:
            proof = base64.b64decode(match["proof"], validate=True)
        except (ValueError, binascii.Error):
            raise SaslError("Invalid SCRAM client final message format") from None
        credential, algorithm = self._credential, self._algorithm
        signed = f"{self._first.bare},{self.text},{match['unproved']}".encode()
        signature = hmac.digest(credential.stored_key, signed, algorithm)
        if len(proof) != len(signature):
            raise WrongProof("Invalid client credentials")
        stored_key = hashlib.new(algorithm, _xor(proof, signature)).digest()
        right = hmac.compare_digest(stored_key, credential.stored_key)
        if match["nonce"] != self._nonce:
            raise SaslError("Invalid client nonce in the final client message")
        if match["binding"] != _base64(self._first.header.encode()):
            raise SaslError("Invalid channel binding in the final client message")
        if not right:
            raise WrongProof("Invalid client credentials")
        return f"v={_base64(hmac.digest(credential.server_key, signed, algorithm))}".encode()


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslError("Invalid SCRAM message: it is not UTF-8") from None


def _unescaped(name: str) -> str:
    if _ESCAPE.search(name):
        raise SaslError("Invalid SCRAM username: '=' and ',' must be written =3D and =2C")
    return name.replace("=2C", ",").replace("=3D", "=")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
