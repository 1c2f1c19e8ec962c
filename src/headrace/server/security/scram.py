"""SCRAM: users whose credentials are in the cluster's metadata, and those who log in with a delegation token.

Whether a user exists is never revealed. A name that nobody has gets a challenge too, always the same one, made from the
mechanism's decoy: a random credential that is kept under the empty name, which no user can have, in the metadata, so that
every broker asks alike. The answer is then judged like any other, and is wrong.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from headrace.server.security.mechanisms import Grant, Refused, Step
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.scram import (
    ALGORITHMS,
    FEWEST_ITERATIONS,
    ClientFirst,
    ScramChallenge,
    ScramCredential,
    WrongProof,
    read_client_first,
)

TOKEN_EXTENSION = "tokenauth"
DECOY = ""
"""The name under which a mechanism's decoy is kept."""

_TEXT_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
"""What the salts of Kafka's Java tools are written in."""

Stored = Mapping[str, str]
"""A credential as the metadata has it: Kafka's names, the bytes in base64."""
FindUser = Callable[[str, str], Stored | None]
"""(user, mechanism) → its credential."""


def store(credential: ScramCredential) -> dict[str, str]:
    return {
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
        "iterations": str(credential.iterations),
    }


def restore(stored: Stored) -> ScramCredential:
    return ScramCredential(
        base64.b64decode(stored["salt"]),
        int(stored["iterations"]),
        base64.b64decode(stored["stored_key"]),
        base64.b64decode(stored["server_key"]),
    )


def new_decoy(mechanism: str, like: ScramCredential | None = None) -> ScramCredential:
    """A credential that nobody can log in with; its salt and iterations look like those of `like`."""
    salt = like.salt if like is not None else secrets.token_bytes(24)
    shaped = _shaped(secrets.token_bytes(len(salt)), salt)
    size = len(hmac.digest(b"", b"", ALGORITHMS[mechanism]))
    iterations = like.iterations if like is not None else FEWEST_ITERATIONS
    return ScramCredential(shaped, iterations, secrets.token_bytes(size), secrets.token_bytes(size))


def _as_if(decoy: ScramCredential, mechanism: str, user: str) -> ScramCredential:
    """What the decoy says of a name that nobody has: the same at every try, and different for every name."""
    wanted = len(decoy.salt)
    material = b""
    while len(material) < wanted:
        block = bytes([len(material) // 64])
        material += hmac.digest(
            decoy.server_key, block + mechanism.encode() + b"\0" + user.encode(), "sha512"
        )
    return replace(decoy, salt=_shaped(material[:wanted], decoy.salt))


def _shaped(salt: bytes, like: bytes) -> bytes:
    """Salts of Java tools are text, those of librdkafka any bytes."""
    if like and all(byte in _TEXT_DIGITS for byte in like):
        return bytes(_TEXT_DIGITS[byte % len(_TEXT_DIGITS)] for byte in salt)
    return salt


class TokenLogin:
    """What a delegation token's login is judged by."""

    __slots__ = ("credential", "grant", "problem")

    def __init__(self, credential: ScramCredential, grant: Grant | None, problem: str) -> None:
        """Without a grant the login is refused at its end, for the `problem` that the log gives."""
        self.credential = credential
        self.grant = grant
        self.problem = problem


FindToken = Callable[[str, str], Awaitable[TokenLogin]]
"""(token id, mechanism) → what to judge by, whether the token exists or not."""


class ScramUsers:
    """One of the two SCRAM mechanisms."""

    def __init__(self, mechanism: str, find_user: FindUser, find_token: FindToken | None = None) -> None:
        """Without `find_token` no delegation token is taken."""
        self.mechanism = mechanism
        self._find_user = find_user
        self.find_token = find_token
        self._own_decoy = new_decoy(mechanism)

    def begin(self) -> ScramLogin:
        return ScramLogin(self)

    def credential(self, user: str) -> tuple[ScramCredential, bool]:
        """What to judge a login by, and whether the user exists. Both cases take the same steps."""
        decoy = self._find_user(DECOY, self.mechanism)
        as_if = _as_if(restore(decoy) if decoy is not None else self._own_decoy, self.mechanism, user)
        stored = self._find_user(user, self.mechanism) if user != DECOY else None
        return (restore(stored), True) if stored is not None else (as_if, False)


class ScramLogin:
    def __init__(self, users: ScramUsers) -> None:
        self._users = users
        self._challenge: ScramChallenge | None = None
        self._grant: Grant | None = None
        self._problem = ""
        self._remedy = ""
        self.user = ""

    def take(self, token: bytes) -> Step | Awaitable[Step]:
        try:
            if self._challenge is None:
                return self._begin(read_client_first(token))
            proof = self._challenge.judge(token)
        except WrongProof:
            raise self._refused() from None
        except SaslError as error:
            raise Refused(f"its message cannot be used ({error})") from None
        if self._grant is None:
            raise self._refused()
        return Step(proof, self._grant)

    def _refused(self) -> Refused:
        return Refused(self._problem or "the password is wrong", remedy=self._remedy)

    def _begin(self, first: ClientFirst) -> Step | Awaitable[Step]:
        self.user = first.username
        mechanism = self._users.mechanism
        if first.extensions.get(TOKEN_EXTENSION, "").lower() == "true":
            return self._begin_with_token(first)
        credential, exists = self._users.credential(first.username)
        if exists:
            self._grant = Grant(first.username, mechanism)
            self._remedy = "correct the client's password, or set a new one with `headrace users password`"
        else:
            self._problem = f"there is no such user for {mechanism}"
            self._remedy = "add it with `headrace users add`, or correct the client's user"
        return self._ask(first, credential)

    async def _begin_with_token(self, first: ClientFirst) -> Step:
        if self._users.find_token is None:
            raise Refused(
                "the cluster has no delegation tokens",
                remedy="set delegation.token.secret.key on every broker",
            )
        found = await self._users.find_token(first.username, self._users.mechanism)
        self._grant, self._problem = found.grant, found.problem
        self._remedy = "create a new token for the client"
        return self._ask(first, found.credential)

    def _ask(self, first: ClientFirst, credential: ScramCredential) -> Step:
        self._challenge = ScramChallenge(self._users.mechanism, first, credential)
        return Step(self._challenge.text.encode())
