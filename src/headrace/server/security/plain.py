"""PLAIN: users and passwords from the listener's JAAS line, `user_alice="…"`."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

from headrace.server.security.mechanism_names import PLAIN
from headrace.server.security.mechanisms import Grant, Refused, Step
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.plain import read_client_message

USER_OPTION = "user_"


class PlainUsers:
    """The mechanism, with the users of one listener. Comparing takes the same time whoever asks."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._key = secrets.token_bytes(32)
        self._digests = {user: self._digest(password) for user, password in passwords.items()}
        self._nobody = secrets.token_bytes(32)

    def begin(self) -> PlainLogin:
        return PlainLogin(self)

    def knows(self, user: str) -> bool:
        return user in self._digests

    def accepts(self, user: str, password: str) -> bool:
        return hmac.compare_digest(self._digests.get(user, self._nobody), self._digest(password))

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(), "sha256")


class PlainLogin:
    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self.user = ""

    def take(self, token: bytes) -> Step:
        try:
            message = read_client_message(token)
        except SaslError as error:
            raise Refused("its message cannot be used", told=str(error)) from None
        self.user = message.username
        if not self._users.accepts(message.username, message.password):
            known = self._users.knows(message.username)
            raise Refused(
                "the password is wrong" if known else "the listener's JAAS line has no such user",
                told="Authentication failed: Invalid username or password",
                remedy=(
                    "correct the password of the client"
                    if known
                    else f'add {USER_OPTION}<name>="<password>" to the sasl.jaas.config of the listener, or correct '
                    "the user of the client"
                ),
            )
        return Step(b"", Grant(message.username, PLAIN))
